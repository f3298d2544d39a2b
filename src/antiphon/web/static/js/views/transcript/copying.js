// A button that copies, and says that it has.

import { h, replace, setLabel } from "../../dom.js";
import { icon } from "../../icons.js";

const SAID = 1600;

/** @param {() => string} text what is copied, asked for when it is */
export function copyButton(text, label = "Copy") {
  const props = { type: "button", class: "quiet icon-only copy", title: label, "aria-label": label };
  const button = h("button", props, icon("copy"));
  let timer = 0;
  const say = (drawn, words) => {
    replace(button, icon(drawn));
    setLabel(button, "aria-label", words);
    clearTimeout(timer);
    timer = setTimeout(() => {
      replace(button, icon("copy"));
      setLabel(button, "aria-label", label);
    }, SAID);
  };
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    try {
      await navigator.clipboard.writeText(text());
      say("check", "Copied");
    } catch {
      say("warning", "Could not be copied");
    }
  });
  return button;
}
