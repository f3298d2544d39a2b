// The list of notices: what the toasts of this page said. A button in the bar opens it.

import { ask } from "../dialog.js";
import { h, replace, setLabel } from "../dom.js";
import { icon } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { clock, counted } from "../words.js";

/** A button that is there once there are notices, and counts the errors that nobody has read. */
export function noticesButton(app) {
  const button = h("button", { type: "button", class: "quiet notices", hidden: true, onclick: () => showNotices(app) });
  const show = () => {
    const { all, unread } = app.notices;
    button.hidden = all.length === 0;
    const label = unread ? `Notices: ${counted(unread, "new error")}` : "Notices";
    setLabel(button, "aria-label", label);
    setLabel(button, "title", label);
    button.classList.toggle("bad", unread > 0);
    replace(button, icon(unread ? "warning" : "info"), unread ? h("span", null, String(unread)) : null);
  };
  app.notices.on("changed", show);
  show();
  return button;
}

export function showNotices(app) {
  const { notices } = app;
  const { all } = notices;
  const shown = ask({
    title: "Notices",
    wide: true,
    body: (close) => {
      if (!all.length) return h("p", { class: "note" }, "This page has said nothing yet.");
      const list = h("ol", { class: "notices-list", tabindex: "0", autofocus: true, "aria-label": "Notices" });
      replace(list, all.map(row));
      const clear = () => {
        notices.clear();
        close();
      };
      return h(
        "div",
        null,
        list,
        h("footer", null, h("button", { type: "button", onclick: clear }, "Clear the list")),
      );
    },
  });
  notices.read();
  return shown;
}

function row({ at, kind, title, message, more }) {
  return h(
    "li",
    { class: kind },
    icon(kind === "bad" ? "warning" : "info"),
    h(
      "div",
      null,
      h("strong", null, safeLine(title, 200)),
      h("small", null, " ", clock(at)),
      message ? h("p", null, safeLine(message, 600)) : null,
      more ? h("pre", null, more) : null,
    ),
  );
}
