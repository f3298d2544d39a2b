// Dialogs: modal, named, closed by Escape, and the focus goes back to where it was.

import { h, on } from "./dom.js";
import { icon } from "./icons.js";

let count = 0;

/**
 * Shows a dialog; the promise is what it was closed with (`null` for Escape and "Cancel").
 * `body(close)` gives its elements; a form in it is sent by Enter.
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
    const shut = h(
      "button",
      { type: "button", class: "quiet icon-only", "aria-label": "Close", onclick: () => close() },
      icon("close"),
    );
    const head = h("header", null, h("h2", { id }, title), shut);
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

/** Asks before something that cannot be taken back; `true` if it shall be done. */
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
