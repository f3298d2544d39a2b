// Keys that work anywhere on the page. A single letter is a command only after Escape: before, it is the
// beginning of a prompt.

import { availableCommands } from "../commands.js";
import { on } from "../dom.js";
import { fieldOf, promptField } from "./focus.js";
import { openPalette } from "./palette.js";
import { closeDrawer } from "./panels.js";

/** Whether a key, pressed outside of fields, writes something. */
function writes({ key, ctrlKey, metaKey, altKey }) {
  return [...key].length === 1 && key !== " " && !ctrlKey && !metaKey && !altKey;
}

export function mount(app) {
  /** Whether the user has left the fields by Escape, so that letters are commands. */
  let left = false;
  on(document, "focusin", (event) => {
    if (fieldOf(event.target)) left = false;
  });
  on(document, "keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const control = event.ctrlKey || event.metaKey;
    const commands = left || promptField() === null;
    if (control && event.key === ".") app.emit("stop");
    else if (control && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") openPalette(app);
    else if (event.key === "Escape") {
      leave();
      left = true;
    } else if (answers(event, commands)) answerBy(event.code.slice(-1));
    else if (answersByLetter(event, commands)) answerBy(letterOf(event));
    else if (!writes(event) || fieldOf(event.target)) return;
    else if (!commands) {
      promptField().focus();
      return; // the letter is written there
    } else {
      const command = availableCommands(app).find(({ keys }) => keys === event.key);
      if (!command) return;
      command.run();
    }
    event.preventDefault();
  });
}

function answers(event, commands) {
  if (!/^(Digit|Numpad)[1-9]$/.test(event.code) || event.ctrlKey || event.metaKey || event.shiftKey) return false;
  const plain = !fieldOf(event.target) && (commands || event.target.closest?.("#questions"));
  return (event.altKey || plain) && document.querySelector("#questions .answers button[data-key]") !== null;
}

/** The letter of a key. With Alt, some systems make another character of it. */
function letterOf({ key, code, altKey, shiftKey }) {
  const letter = altKey && !/^[a-z]$/i.test(key) ? code.slice(3) : key;
  return shiftKey ? letter.toUpperCase() : letter.toLowerCase();
}

/** The button of the first open question that a digit or letter chooses. Rejecting once and always stand in
 * for each other: both keys mean no. */
function answerButton(key) {
  const answersOf = document.querySelector("#questions .permission .answers");
  const find = (letter) => answersOf?.querySelector(`button[data-letter="${letter}"]`);
  if (/[0-9]/.test(key)) return answersOf?.querySelector(`button[data-key="${key}"]`);
  return find(key) ?? (key === "N" ? find("n") : null);
}

function answersByLetter(event, commands) {
  if (event.ctrlKey || event.metaKey) return false;
  const plain = !fieldOf(event.target) && (commands || event.target.closest?.("#questions"));
  if (!event.altKey && !plain) return false;
  return /^[yanN]$/.test(letterOf(event)) && Boolean(answerButton(letterOf(event)));
}

/** Answer the first open question. */
function answerBy(key) {
  answerButton(key)?.click();
}

function leave() {
  if (!closeDrawer() && document.activeElement instanceof HTMLElement) document.activeElement.blur();
}
