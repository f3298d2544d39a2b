// The focus: in the composer whenever a session is opened or begun.

/** The field for prompts, if one can write in it now. */
export function promptField() {
  const field = document.getElementById("prompt");
  return field && !field.disabled && field.offsetParent !== null && !field.closest("[inert]") ? field : null;
}

/** Put the focus into the composer. On touch screens this would open the keyboard over the page. */
export function focusPrompt() {
  if (document.querySelector("dialog[open]") || matchMedia("(pointer: coarse)").matches) return;
  promptField()?.focus({ preventScroll: true });
}

export function mount(app) {
  let been = false;
  app.on("session", focusPrompt);
  app.on("opened", () => requestAnimationFrame(focusPrompt)); // after a drawer has given the focus back
  app.on("link", () => {
    if (been || app.link.state !== "online") return;
    been = true;
    focusPrompt();
  });
}
