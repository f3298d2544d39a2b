// Modal dialogs. Escape closes them, and the focus returns to where it was.

import { h, on } from "./dom.js";
import { iconButton } from "./icons.js";

let count = 0;

/**
 * Show a dialog. The promise resolves to the value that it was closed with (`null` for Escape and "Cancel").
 * `body(close)` returns its elements.
 */
export function ask({ title, body, wide = false }) {
  const id = `dialog-${++count}`;
  const before = document.activeElement;
  return new Promise((resolve) => {
    let result = null;
    const close = (value = null) => {
      result = value;
      dialog.close();
    };
    const head = h("header", null, h("h2", { id }, title), iconButton("close", "Close", () => close()));
    const dialog = h("dialog", { class: wide && "wide", "aria-labelledby": id }, head, body(close));
    on(dialog, "close", () => {
      dialog.remove();
      if (before?.isConnected) before.focus();
      resolve(result);
    });
    on(dialog, "click", (event) => event.target === dialog && close());
    on(dialog, "keydown", (event) => event.stopPropagation());
    document.body.append(dialog);
    dialog.showModal();
    (dialog.querySelector("[autofocus]") ?? dialog.querySelector("input, select, textarea"))?.focus();
  });
}

/** Ask for a confirmation. Resolves to `true` if the user agrees. */
export function confirmed({ title, text, action }) {
  return ask({
    title,
    body: (close) =>
      h(
        "form",
        {
          method: "dialog",
          onsubmit: (event) => {
            event.preventDefault();
            close(true);
          },
        },
        h("p", null, text),
        h(
          "footer",
          null,
          h("button", { type: "button", autofocus: true, onclick: () => close() }, "Cancel"),
          h("button", { type: "submit", class: "danger" }, action),
        ),
      ),
  }).then(Boolean);
}
