// Patterns of form fields, matched in bounded time: the twin of engine/forms/patterns.py. All ways through a
// pattern are followed at once, so a match takes at most one visit of each step for each character. The browser's own
// regular expressions would take for ever with some. Pure.

import { AT, CharSet, FOUND, parsePattern, SPLIT, TAKE, Unsupported, WORD } from "./pattern_parser.js";

/** How many characters a pattern may have. */
const LONGEST = 1000;
/** How much a match may cost: steps of the pattern and parts of its sets, times characters of the text. */
const VISITS = 2_000_000;
/** Comparisons of a character that take as long as one visit of a step. */
const CHEAP = 8;

/** Whether a text matches somewhere; null, where that cannot be told here in bounded time. */
export function matches(source, text) {
  try {
    return source.length > LONGEST ? null : found(parsePattern(source), [...text]);
  } catch (error) {
    if (error instanceof Unsupported) return null;
    throw error;
  }
}

function found(steps, text) {
  const sets = new Set(steps.map((step) => step.allowed).filter((set) => set instanceof CharSet));
  const parts = [...sets].reduce((sum, set) => sum + set.size, 0);
  if ((steps.length + parts / CHEAP) * (text.length + 1) > VISITS) return null;
  const codes = text.map((char) => char.codePointAt(0));
  let current = [];
  for (let at = 0; at <= codes.length; at += 1) {
    const seen = new Uint8Array(steps.length);
    const waiting = [];
    const todo = [0, ...current];
    while (todo.length) {
      const index = todo.pop();
      if (seen[index]) continue;
      seen[index] = 1;
      const step = steps[index];
      if (step.kind === TAKE) waiting.push(index);
      else if (step.kind === SPLIT) todo.push(step.one, step.other);
      else if (step.kind === FOUND) return true;
      else if (step.kind === AT && holds(step.place, codes, at)) todo.push(index + 1);
    }
    if (at === codes.length) return false;
    const known = new Map(); // a set that stands there often is asked once
    current = waiting.filter((index) => allows(steps[index].allowed, codes[at], known)).map((index) => index + 1);
  }
  return false;
}

function allows(set, code, known) {
  if (!known.has(set)) known.set(set, set.has(code));
  return known.get(set);
}

function holds(place, codes, at) {
  if (place === "^") return at === 0;
  if (place === "$") return at === codes.length;
  const before = at > 0 && WORD.has(codes[at - 1]);
  const after = at < codes.length && WORD.has(codes[at]);
  return (before !== after) === (place === "\\b");
}
