// The parts of a long text that are shown. Pure.

const LONG = 48_000;
export const HEAD = 20_000;
const TAIL = 16_000;
const STEP = 8_000;

/** A place to cut near `at`: after a line, else after a word, else there. Pure. */
export function cutNear(text, at) {
  if (at <= 0) return 0;
  if (at >= text.length) return text.length;
  const from = Math.max(0, at - 2000);
  const near = text.slice(from, at);
  for (const mark of ["\n\n", "\n", " "]) {
    const found = near.lastIndexOf(mark);
    if (found >= 0) return from + found + mark.length;
  }
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at; // never inside a surrogate pair
}

/**
 * Which parts of a text are shown: all of it, or a head, and a tail that moves in steps, so that a text that
 * grows is not drawn anew with each word. Pure.
 */
export function partsOf(text, shown = HEAD) {
  if (text.length <= LONG) return { head: text.length, tail: text.length };
  const head = cutNear(text, Math.max(HEAD, shown));
  const wanted = Math.floor((text.length - TAIL) / STEP) * STEP;
  if (wanted <= head) return { head: text.length, tail: text.length };
  return { head, tail: Math.max(head, cutNear(text, wanted)) };
}
