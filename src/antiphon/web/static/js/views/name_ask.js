// The question for the user's name: asked once, above the composer, if neither the login nor the user gave one.

import { h } from "../dom.js";
import { icon, iconButton } from "../icons.js";
import { keep, kept } from "../storage.js";

export function mount(app, main) {
  const field = h("input", { id: "ask-name", maxlength: 64, autocomplete: "nickname" });
  const done = () => {
    keep("name.asked", "yes");
    show();
    app.emit("opened");
  };
  const save = (event) => {
    event.preventDefault();
    const name = field.value.trim();
    if (name) app.setName(name);
    done();
  };
  const form = h(
    "form",
    { class: "name-ask", onsubmit: save },
    icon("people"),
    h("label", { for: "ask-name" }, "What is your name? Others see it with your prompts."),
    field,
    h("button", { type: "submit" }, "Save"),
    iconButton("close", "Do not ask again", done),
  );
  const element = h("section", { id: "name-ask", "aria-label": "Your name", hidden: true }, form);
  main.insertBefore(element, document.getElementById("composer"));
  const show = () => {
    const online = app.link.state === "online";
    const known = kept("name") !== null || kept("name.asked") !== null;
    element.hidden = known || !online || app.role === "observer";
  };
  app.on("link", show);
  app.on("named", show);
  show();
}
