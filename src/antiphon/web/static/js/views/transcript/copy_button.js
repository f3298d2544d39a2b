// A button that copies a text, and shows whether that worked.

import { replace, setLabel } from "../../dom.js";
import { icon, iconButton } from "../../icons.js";

const SAID = 1600;

/** @param {() => string} text returns the text to copy */
export function copyButton(text, label = "Copy") {
  const button = iconButton("copy", label, null, { kind: "copy" });
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
      say("warning", "Not copied");
    }
  });
  return button;
}
