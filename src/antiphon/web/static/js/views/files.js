// The files that tool calls have changed. A click shows the call.

import { h, replace } from "../dom.js";
import { follow } from "../follow.js";
import { icon } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { counted, within } from "../words.js";

const SHOWN = 500;

/** The name of a file, and the folder it is in, from where the session works. Pure. */
export function pathParts(path, cwd) {
  const inside = within(path, cwd);
  const at = Math.max(inside.lastIndexOf("/"), inside.lastIndexOf("\\"));
  return { name: inside.slice(at + 1) || inside, folder: at > 0 ? inside.slice(0, at) : "" };
}

export function mount(app, element, count) {
  const shown = new Map();

  /** The last call that changed it; with every further click the one before. */
  const reveal = ({ path, calls }) => {
    const at = (shown.get(path) ?? calls.length) - 1;
    const which = at >= 0 ? at : calls.length - 1;
    shown.set(path, which);
    app.emit("reveal", { id: calls[which] });
  };

  follow(app, ["files"], (session) => {
    const files = session?.touched ?? [];
    count(files.length ? String(files.length) : "");
    const rows = files.slice(-SHOWN).map((file) => row(file, session.cwd, () => reveal(file)));
    const more = files.length - rows.length;
    if (more) rows.unshift(h("li", { class: "note" }, `${counted(more, "earlier file")}`));
    const nothing = "The agent has not changed any files yet.";
    const all = h("button", { type: "button", class: "small all-changes", onclick: () => app.emit("changes", {}) },
      icon("edit"), "Show all changes");
    replace(element, rows.length ? [all, h("ul", { class: "files" }, rows)] : h("p", { class: "nothing" }, nothing));
  });
}

function row(file, cwd, reveal) {
  const { name, folder } = pathParts(file.path, cwd);
  const changes = file.calls.length > 1 ? counted(file.calls.length, "change") : null;
  const lines = (tag, sign, number, verb) =>
    number ? h(tag, null, sign, number, h("span", { class: "only-read" }, ` lines ${verb}`)) : null;
  return h(
    "li",
    null,
    h(
      "button",
      { type: "button", title: safeLine(file.path, 400), onclick: reveal },
      h("span", { class: "file-name" }, safeLine(name, 120)),
      h(
        "span",
        { class: "file-lines" },
        lines("ins", "+", file.added, "added"),
        lines("del", "−", file.removed, "removed"),
      ),
      h("span", { class: "file-folder" }, [safeLine(folder, 160), changes].filter(Boolean).join(" · ")),
    ),
  );
}
