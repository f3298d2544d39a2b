// The state of a session as a mark and a word, never by colour alone.

import { h } from "../dom.js";

export const STATES = {
  idle: { word: "Ready", mark: "idle" },
  running: { word: "Working", mark: "working" },
  requires_action: { word: "Waiting for an answer", mark: "waiting" },
  starting: { word: "Starting", mark: "working" },
  failed: { word: "Not started", mark: "lost" },
  kept: { word: "Stored", mark: "kept" },
  damaged: { word: "Damaged", mark: "lost" },
  newer: { word: "Written by a newer version", mark: "lost" },
};

export function stateOf(state) {
  return STATES[state] ?? STATES.kept;
}

export function stateDot(state) {
  return h("span", { class: ["dot", stateOf(state).mark], "aria-hidden": "true" });
}

export function stateMark(state) {
  return h(
    "span",
    { class: ["state", stateOf(state).mark] },
    stateDot(state),
    h("span", null, stateOf(state).word),
  );
}
