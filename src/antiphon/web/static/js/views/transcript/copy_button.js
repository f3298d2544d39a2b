// A button that copies a text, and shows whether that worked.

import { h, replace, setLabel } from "../../dom.js";
import { icon, iconButton } from "../../icons.js";

const SAID = 1600;

/**
 * @param {() => string} text returns the text to copy
 * @param {string|null} words are shown beside the icon
 */
export function copyButton(text, label = "Copy", words = null) {
  const button = iconButton("copy", label, null, { kind: "copy" });
  const draw = (drawn) => replace(button, icon(drawn), words === null ? null : h("span", null, words));
  button.classList.toggle("icon-only", words === null);
  draw("copy");
  let timer = 0;
  const say = (drawn, said) => {
    draw(drawn);
    setLabel(button, "aria-label", said);
    clearTimeout(timer);
    timer = setTimeout(() => {
      draw("copy");
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
