// The state of the connection to the hub while it is lost, with a button to reconnect now.

import { h, replace, setText } from "../dom.js";
import { icon } from "../icons.js";

/** The text for the state of the connection, or null if it works. Pure. */
export function linkWords({ state, retryAt }, now) {
  if (state === "online") return null;
  if (state === "connecting") return "Connecting…";
  const seconds = retryAt ? Math.ceil((retryAt - now) / 1000) : 0;
  return seconds > 0 ? `Reconnecting in ${seconds} s` : "Reconnecting…";
}

export function linkMark(app) {
  const words = h("span");
  const retry = h(
    "button",
    { type: "button", class: "quiet", onclick: () => app.retry?.() },
    icon("retry"),
    "Retry now",
  );
  const element = h(
    "span",
    { class: "link-state", hidden: true },
    h("span", { class: "dot lost", "aria-hidden": "true" }),
    words,
    retry,
  );
  // Announced once to screen readers, not every second.
  const heard = h("span", { class: "only-read", role: "status" });
  let timer = 0;
  let before = app.link.state;
  const show = () => {
    clearTimeout(timer);
    const said = linkWords(app.link, Date.now());
    element.hidden = said === null;
    setText(words, said ?? "");
    retry.hidden = app.link.state !== "lost" || typeof app.retry !== "function";
    document.documentElement.dataset.link = app.link.state;
    if (before !== app.link.state) {
      replace(
        heard,
        { lost: "The connection to the hub was lost. Reconnecting.", online: "Connected again." }[app.link.state],
      );
      before = app.link.state;
    }
    if (app.link.state === "lost") timer = setTimeout(show, 500);
  };
  app.on("link", show);
  show();
  return [element, heard];
}
