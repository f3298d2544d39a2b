// Short messages that disappear after a while. Errors stay longer and say what to do next.

import { h, on } from "../dom.js";
import { failureNotice } from "../failure.js";
import { icon, iconButton } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { showNotices } from "./notices.js";

const SHOWN = 4;

/** Show the error of a call. */
export function tell(app, title, error) {
  app.emit("error", failureNotice(title, error));
}

export function mount(app, element) {
  const show = ({ title, message, kind = "bad", action, more = null, shown }) => {
    const repeated = [...element.children].find((each) => each.dataset.said === `${title}${message}`);
    repeated?.remove();
    while (element.children.length >= SHOWN) element.firstElementChild.remove();
    const toast = h(
      "div",
      { class: ["toast", kind], dataset: { said: `${title}${message}` } },
      icon(kind === "bad" ? "warning" : "info"),
      h(
        "div",
        null,
        h("strong", null, safeLine(title, 120)),
        message ? h("p", null, safeLine(message, 600)) : null,
        action
          ? h("button", { type: "button", onclick: () => (toast.remove(), action.run()) }, action.label)
          : null,
        more
          ? h("button", { type: "button", onclick: () => (toast.remove(), showNotices(app)) }, "Details")
          : null,
      ),
      iconButton("close", "Dismiss", () => toast.remove()),
    );
    element.append(toast);
    let timer = 0;
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => toast.remove(), shown ?? (kind === "bad" ? 12_000 : 5000));
    };
    for (const type of ["pointerenter", "focusin"]) on(toast, type, () => clearTimeout(timer));
    for (const type of ["pointerleave", "focusout"]) on(toast, type, wait);
    wait();
  };
  app.on("error", show);
  app.on("told", (detail) => show({ kind: "news", ...detail }));
}
