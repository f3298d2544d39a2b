// Several patches of one file as one, without the file: what they say of it is enough. Pure.
//
// The file is a row of pieces: lines of the file as it was, by their numbers ({from, to}, to excluded), and added
// lines ({lines}). Each patch changes the pieces; what is missing in the end was removed.

import { diffLines } from "./line_diff.js";

const CONTEXT = 3;
/** A merge with more pieces is given up, and the patches stay apart. */
const MOST_PIECES = 4000;

export class Merge {
  #pieces;
  /** The lines of the file as it was, as far as patches have shown them. */
  #known = new Map();

  /** `existed`: whether the file was there before the first patch. */
  constructor(existed) {
    this.#pieces = existed ? [{ from: 1, to: Infinity }] : [];
  }

  /** Apply a patch. Returns false, and changes nothing, if it does not fit what is known of the file. */
  apply(hunks) {
    const known = new Map();
    let pieces = this.#pieces;
    for (const hunk of [...hunks].reverse()) {
      pieces = this.#applied(pieces, hunk, known);
      if (pieces === null || pieces.length > MOST_PIECES) return false;
    }
    this.#pieces = pieces;
    for (const [line, text] of known) this.#known.set(line, text);
    return true;
  }

  #applied(pieces, { oldStart, lines }, known) {
    const takes = lines.some(({ sign }) => sign !== "+");
    const [head, tail] = split(pieces, takes ? oldStart - 1 : oldStart);
    if (head === null) return null;
    const made = [...head];
    for (const { sign, text } of lines) {
      if (sign === "+") add(made, text);
      else {
        const line = shift(tail);
        if (line === null) return null;
        if (line.number !== undefined) {
          const before = this.#known.get(line.number) ?? known.get(line.number);
          if (before !== undefined && before !== text) return null;
          known.set(line.number, text);
        } else if (line.text !== text) return null;
        if (sign !== "-") line.number === undefined ? add(made, text) : keep(made, line.number, line.number + 1);
      }
    }
    for (const piece of tail) piece.lines ? made.push(piece) : keep(made, piece.from, piece.to);
    return made;
  }

  /** The hunks of all patches together. */
  hunks() {
    const hunks = [];
    let hunk = null;
    let end = 1; // the first old line behind the last change
    for (const block of this.#blocks()) {
      const between = this.#range(end, block.old);
      if (hunk && between && between.length <= 2 * CONTEXT) push(hunk, " ", between);
      else {
        this.#close(hunk, end, block.old);
        const before = this.#before(block.old, hunk ? end : 1);
        hunk = { oldStart: block.old - before.length, newStart: block.now - before.length, section: "", lines: [] };
        hunks.push(hunk);
        push(hunk, " ", before);
      }
      for (const line of diffLines(block.removed, block.added)) hunk.lines.push(line);
      end = block.old + block.removed.length;
    }
    this.#close(hunk, end, Infinity);
    for (const each of hunks) {
      if (!each.lines.some(({ sign }) => sign !== "+")) each.oldStart -= 1;
      if (!each.lines.some(({ sign }) => sign !== "-")) each.newStart -= 1;
    }
    return hunks;
  }

  /** What was removed and added, place by place. */
  *#blocks() {
    let [old, now, added] = [1, 1, []];
    for (const piece of [...this.#pieces, { from: Infinity, to: Infinity }]) {
      if (piece.lines) {
        added.push(...piece.lines);
        continue;
      }
      const removed = piece.from === Infinity ? this.#rest(old) : this.#range(old, piece.from);
      if (removed.join("\n") !== added.join("\n") || removed.length !== added.length) {
        yield { old, now, removed, added };
      }
      now += added.length + (piece.to - piece.from);
      old = piece.to;
      added = [];
    }
  }

  /** Old lines that are known one after the other, where the file ends. */
  #rest(from) {
    const texts = [];
    if (this.#pieces.at(-1)?.to === Infinity) return texts;
    for (let at = from; this.#known.has(at); at += 1) texts.push(this.#known.get(at));
    return texts;
  }

  #range(from, to) {
    const texts = [];
    for (let at = from; at < to; at += 1) {
      if (!this.#known.has(at)) return null;
      texts.push(this.#known.get(at));
    }
    return texts;
  }

  #before(line, least) {
    const texts = [];
    for (let at = line - 1; at >= least && texts.length < CONTEXT && this.#known.has(at); at -= 1) {
      texts.unshift(this.#known.get(at));
    }
    return texts;
  }

  #close(hunk, from, to) {
    for (let at = from; hunk && at < Math.min(to, from + CONTEXT) && this.#known.has(at); at += 1) {
      push(hunk, " ", [this.#known.get(at)]);
    }
  }
}

function push(hunk, sign, texts) {
  for (const text of texts) hunk.lines.push({ sign, text });
}

function add(pieces, text) {
  const last = pieces.at(-1);
  if (last?.lines) pieces[pieces.length - 1] = { lines: [...last.lines, text] };
  else pieces.push({ lines: [text] });
}

function keep(pieces, from, to) {
  const last = pieces.at(-1);
  if (last && !last.lines && last.to === from) pieces[pieces.length - 1] = { from: last.from, to };
  else if (to > from) pieces.push({ from, to });
}

/** Pieces before and behind so many lines; nulls if there are fewer. */
function split(pieces, count) {
  const head = [];
  let left = count;
  for (let at = 0; at < pieces.length; at += 1) {
    if (left <= 0) return [head, pieces.slice(at)];
    const piece = pieces[at];
    const size = piece.lines ? piece.lines.length : piece.to - piece.from;
    if (size > left) {
      const [one, two] = piece.lines
        ? [{ lines: piece.lines.slice(0, left) }, { lines: piece.lines.slice(left) }]
        : [{ from: piece.from, to: piece.from + left }, { from: piece.from + left, to: piece.to }];
      return [[...head, one], [two, ...pieces.slice(at + 1)]];
    }
    head.push(piece);
    left -= size;
  }
  return left <= 0 ? [head, []] : [null, null];
}

/** Take the first line: {number} of the file as it was, or {text}; null if there is none. */
function shift(pieces) {
  const piece = pieces[0];
  if (!piece) return null;
  if (piece.lines) {
    const [text, ...rest] = piece.lines;
    if (rest.length) pieces[0] = { lines: rest };
    else pieces.shift();
    return { text };
  }
  if (piece.from + 1 < piece.to) pieces[0] = { from: piece.from + 1, to: piece.to };
  else pieces.shift();
  return { number: piece.from };
}
