// The whole page, before there is anything else to show: the first link is made, or this browser is not let in.

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
      h("h1", null, app.linkWasGood === false ? "This link is not good any more" : "You are not logged in here"),
      h("p", null, "Each link lets one browser in, once, and only for a few minutes."),
      h("p", null, "For a new one, run this where the hub runs, and open what it prints:"),
      h("pre", { class: "command" }, "antiphon link"),
    ];
  }
  if (state === "lost") {
    return [
      h("h1", null, "The hub cannot be reached"),
      h("p", null, "It is tried again all the time. Is it running?"),
      h("pre", { class: "command" }, "antiphon serve"),
    ];
  }
  return [h("h1", null, "Antiphon"), h("p", { role: "status" }, "Connecting to the hub")];
}
