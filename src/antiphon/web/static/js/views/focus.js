// The focus: in the composer whenever a session is opened or begun.

/** The field for prompts, if one can write in it now. */
export function promptField() {
  const field = document.getElementById("prompt");
  return field && !field.disabled && field.offsetParent !== null && !field.closest("[inert]") ? field : null;
}

/** The field that an element is or is in, if one can write or choose in it. */
export function fieldOf(element) {
  return element?.closest?.("textarea, select, [contenteditable], input:not([type=checkbox]):not([type=radio])") ?? null;
}

/** Put the focus into the composer. On touch screens this would open the keyboard over the page. */
export function focusPrompt() {
  if (document.querySelector("dialog[open]") || matchMedia("(pointer: coarse)").matches) return;
  promptField()?.focus({ preventScroll: true });
}

export function mount(app) {
  let been = false;
  app.on("session", focusPrompt);
  app.on("opened", () => {
    const before = document.activeElement;
    // Wait until a drawer has given the focus back. A field that the user has gone to since then keeps it.
    requestAnimationFrame(() => {
      if (document.activeElement === before || !fieldOf(document.activeElement)) focusPrompt();
    });
  });
  app.on("link", () => {
    if (been || app.link.state !== "online") return;
    been = true;
    if (!fieldOf(document.activeElement)) focusPrompt();
  });
}
