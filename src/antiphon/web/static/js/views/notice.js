// The page before the first connection: connecting, not logged in, or the hub is not reachable.

import { h, replace } from "../dom.js";
import { mark } from "../icons.js";

export function mount(app, element) {
  let been = false;
  const show = () => {
    const { state } = app.link;
    if (state === "online") been = true;
    element.hidden = state === "online" || (been && state !== "refused");
    if (!element.hidden) replace(element, h("div", { class: "notice-card" }, mark(), words(app, state)));
    document.getElementById("page").inert = !element.hidden;
  };
  app.on("link", show);
  show();
}

function words(app, state) {
  if (state === "refused") {
    return [
      h("h1", null, app.linkWasGood === false ? "This link has expired or was used before" : "You are not logged in"),
      h("p", null, "A login link works for one browser, once, within five minutes."),
      h("p", null, "To get a new link, run this command on the hub's machine and open the link that it prints:"),
      h("pre", { class: "command" }, "antiphon link"),
    ];
  }
  if (state === "lost") {
    return [
      h("h1", null, "The hub cannot be reached"),
      h("p", null, "The page keeps trying. If the hub is not running, start it on its machine:"),
      h("pre", { class: "command" }, "antiphon serve"),
    ];
  }
  return [h("h1", null, "Antiphon"), h("p", { role: "status" }, "Connecting to the hub")];
}
