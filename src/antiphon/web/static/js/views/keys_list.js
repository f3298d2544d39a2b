// The dialog that lists all keys.

import { ask } from "../dialog.js";
import { h } from "../dom.js";

const KEYS = [
  [
    "Anywhere",
    [
      ["Ctrl K", "All commands and sessions"],
      ["Ctrl F", "Find in the transcript"],
      ["Ctrl .", "Stop the turn"],
      ["Alt 1 to 9", "Answer a question"],
      ["Esc", "Close, or leave the field"],
    ],
  ],
  [
    "After Esc",
    [
      ["?", "Show these keys"],
      ["n", "New session"],
      ["/", "Find a session"],
      ["c", "Write a prompt"],
      ["[  ]", "Show or hide the panels"],
      ["p  f  t  w", "Plan, files, timeline, people"],
      ["1 to 9", "Answer a question"],
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
