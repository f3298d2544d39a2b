// Keys that work anywhere on the page, and the dialog that lists all keys.

import { ask } from "../dialog.js";
import { h, on } from "../dom.js";
import { newSession } from "./new_session.js";
import { closeDrawer, isOpen, setPanel, togglePanel } from "./panels.js";

const KEYS = [
  [
    "Anywhere",
    [
      ["?", "Show these keys"],
      ["n", "New session"],
      ["/", "Find a session"],
      ["Ctrl F", "Find in the transcript"],
      ["c", "Write a prompt"],
      ["[  ]", "Show or hide the panels"],
      ["p  f  t  w", "Plan, files, timeline, people"],
      ["1 to 9", "Answer a question (with Alt while typing)"],
      ["Ctrl .", "Stop the turn"],
      ["Esc", "Close, or leave the field"],
    ],
  ],
  [
    "In the prompt",
    [
      ["Enter", "Send; while the agent works: queue, steer or interrupt"],
      ["Shift Enter", "New line"],
      ["/", "Commands; Tab completes"],
      ["↑  ↓", "Earlier prompts, if the field is empty"],
    ],
  ],
  [
    "Sessions and queue",
    [
      ["↑  ↓", "Move between sessions"],
      ["Delete", "Delete the session"],
      ["Alt ↑  Alt ↓", "Move a queued prompt"],
    ],
  ],
];

const TABS = { p: "plan", f: "files", t: "timeline", w: "people" };

export function showKeys() {
  return ask({
    title: "Keys",
    wide: true,
    body: () =>
      h(
        "div",
        { class: "keys" },
        KEYS.map(([heading, rows]) =>
          h(
            "section",
            null,
            h("h3", null, heading),
            h(
              "dl",
              null,
              rows.map(([keys, what]) =>
                h(
                  "div",
                  null,
                  h(
                    "dt",
                    null,
                    keys.split("  ").map((key) => h("kbd", null, key)),
                  ),
                  h("dd", null, what),
                ),
              ),
            ),
          ),
        ),
      ),
  });
}

const typing = (element) =>
  element.closest?.("textarea, select, [contenteditable], input:not([type=checkbox]):not([type=radio])");

export function mount(app) {
  const plain = {
    "?": () => showKeys(),
    n: () => newSession(app),
    "/": () => {
      if (!isOpen("sessions")) setPanel("sessions", true);
      document.getElementById("find")?.focus();
    },
    c: () => document.getElementById("prompt")?.focus(),
    "[": () => togglePanel("sessions"),
    "]": () => togglePanel("side"),
    ...Object.fromEntries(Object.entries(TABS).map(([key, tab]) => [key, () => app.emit("tab", tab)])),
  };
  on(document, "keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.key === "." && (event.ctrlKey || event.metaKey)) app.emit("stop");
    else if (event.key === "Escape") leave();
    else if (answers(event)) answerBy(event.code.slice(-1));
    else if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    else if (Object.hasOwn(plain, event.key)) plain[event.key]();
    else return;
    event.preventDefault();
  });
}

function answers(event) {
  if (!/^(Digit|Numpad)[1-9]$/.test(event.code) || event.ctrlKey || event.metaKey || event.shiftKey)
    return false;
  return (
    (event.altKey || !typing(event.target)) &&
    document.querySelector("#questions .answers button[data-key]") !== null
  );
}

/** Answer the first open question. */
function answerBy(digit) {
  const answersOf = document.querySelector("#questions .permission .answers");
  answersOf?.querySelector(`button[data-key="${digit}"]`)?.click();
}

function leave() {
  if (!closeDrawer() && document.activeElement instanceof HTMLElement) document.activeElement.blur();
}
