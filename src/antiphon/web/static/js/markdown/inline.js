// What stands inside a line of Markdown: code, emphasis, links. Pure; time grows with the length alone.
//
// Nodes: {type: "text", text} | {type: "code", text} | {type: "em"|"strong"|"del", nodes}
//   | {type: "link", href, nodes} | {type: "image", href, alt} | {type: "break"}
//   | {type: "math", tree, source, display}

import { formulaAt } from "./formulas.js";

const PUNCTUATION = /[!-/:-@[-`{-~\p{P}\p{S}]/u;
const BETWEEN = /[\s!-/:-@[-`{-~\p{P}\p{S}]/u;
const BARE = /^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,:;!?)\]}*_]/i;
const AUTO = /^<((?:https?:\/\/|mailto:)[^\s<>]*)>/i;
const SPECIAL = /[\\`*_~[\]!<\nh$]/g;
const MOST_BRACKETS = 64;
/** Nobody emphasizes so much in one paragraph; more is meant to keep us busy. */
const MOST_MARKS = 2000;

/** An address that a page may lead to, or null: no script, no file, nothing that another program runs. */
export function safeAddress(given) {
  try {
    const url = new URL(given);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

export function parseInline(text) {
  const scan = new Scan(text);
  scan.run();
  return scan.finish(0);
}

class Scan {
  constructor(text) {
    this.text = text;
    this.at = 0;
    /** Nodes and delimiters in order: {type: "text"}, nodes, or {mark, count, opens, closes}. */
    this.parts = [];
    this.brackets = [];
    this.marks = 0;
    this.plain = "";
    /** Lengths of backtick runs that have no partner further on. */
    this.lonely = new Set();
  }

  run() {
    const { text } = this;
    while (this.at < text.length) {
      SPECIAL.lastIndex = this.at;
      const found = SPECIAL.exec(text);
      const next = found ? found.index : text.length;
      this.plain += text.slice(this.at, next);
      this.at = next;
      if (found && !this.special(found[0])) {
        this.plain += text[this.at];
        this.at += 1;
      }
    }
    this.flush();
  }

  special(char) {
    switch (char) {
      case "\\": return this.formula() || this.escape();
      case "$": return this.formula();
      case "`": return this.code();
      case "*": case "_": case "~": return this.mark(char);
      case "[": return this.open(false);
      case "!": return this.text[this.at + 1] === "[" && this.open(true);
      case "]": return this.close();
      case "<": return this.auto();
      case "h": return this.bare();
      default: return this.newline();
    }
  }

  flush() {
    if (this.plain) this.parts.push({ type: "text", text: this.plain });
    this.plain = "";
  }

  add(node, length) {
    this.flush();
    this.parts.push(node);
    this.at += length;
    return true;
  }

  formula() {
    const found = formulaAt(this.text, this.at);
    return found !== null && this.add(found.node, found.length);
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === "\n") return this.add({ type: "break" }, 2);
    if (next === undefined || !/[!-/:-@[-`{-~]/.test(next)) return false;
    this.plain += next;
    this.at += 2;
    return true;
  }

  newline() {
    const hard = this.text.slice(Math.max(0, this.at - 2), this.at) === "  ";
    if (this.text[this.at - 1] === " ") this.plain = this.plain.trimEnd();
    if (hard) return this.add({ type: "break" }, 1);
    this.plain += "\n";
    this.at += 1;
    return true;
  }

  code() {
    const run = /^`+/.exec(this.text.slice(this.at, this.at + 256))[0];
    if (!this.lonely.has(run.length)) {
      const end = this.partner(run);
      if (end >= 0) {
        let inner = this.text.slice(this.at + run.length, end).replace(/\n/g, " ");
        if (inner.startsWith(" ") && inner.endsWith(" ") && inner.trim()) inner = inner.slice(1, -1);
        return this.add({ type: "code", text: inner }, end + run.length - this.at);
      }
      this.lonely.add(run.length);
    }
    this.plain += run;
    this.at += run.length;
    return true;
  }

  partner(run) {
    let at = this.at + run.length;
    while ((at = this.text.indexOf(run, at)) >= 0) {
      let end = at + run.length;
      while (this.text[end] === "`") end += 1;
      if (end - at === run.length) return at;
      at = end;
    }
    return -1;
  }

  mark(char) {
    let end = this.at;
    while (this.text[end] === char) end += 1;
    const count = end - this.at;
    this.marks += 1;
    if ((char === "~" && count !== 2) || this.marks > MOST_MARKS) {
      this.plain += this.text.slice(this.at, end);
      this.at = end;
      return true;
    }
    const before = this.at ? this.text[this.at - 1] : " ";
    const after = this.text[end] ?? " ";
    const left = !/\s/.test(after) && (!PUNCTUATION.test(after) || BETWEEN.test(before));
    const right = !/\s/.test(before) && (!PUNCTUATION.test(before) || BETWEEN.test(after));
    const opens = char === "_" ? left && (!right || PUNCTUATION.test(before)) : left;
    const closes = char === "_" ? right && (!left || PUNCTUATION.test(after)) : right;
    return this.add({ mark: char, count, whole: count, opens, closes }, count);
  }

  open(image) {
    const length = image ? 2 : 1;
    if (this.brackets.length >= MOST_BRACKETS) return false;
    this.flush();
    this.brackets.push({ image, part: this.parts.length, at: this.at + length });
    this.parts.push({ type: "text", text: image ? "![" : "[" });
    this.at += length;
    return true;
  }

  close() {
    const bracket = this.brackets.pop();
    if (!bracket) return false;
    const target = destination(this.text, this.at + 1);
    if (!target) return false;
    this.flush();
    const href = safeAddress(target.href);
    const label = this.text.slice(bracket.at, this.at);
    const nodes = this.finish(bracket.part + 1);
    this.parts.length = bracket.part;
    this.at = target.end;
    if (bracket.image) this.parts.push({ type: "image", href, alt: label });
    else this.parts.push({ type: "link", href, nodes });
    if (!bracket.image) this.brackets = []; // no links inside links
    return true;
  }

  auto() {
    const found = AUTO.exec(this.text.slice(this.at, this.at + 2048));
    if (!found) return false;
    const text = found[1].replace(/^mailto:/i, "");
    const node = { type: "link", href: safeAddress(found[1]), nodes: [{ type: "text", text }] };
    return this.add(node, found[0].length);
  }

  bare() {
    if (this.at && /[\p{L}\p{N}]/u.test(this.text[this.at - 1])) return false;
    if (!this.text.startsWith("http", this.at)) return false;
    const found = BARE.exec(this.text.slice(this.at, this.at + 2048));
    if (!found || this.brackets.length) return false;
    const href = safeAddress(found[0]);
    return this.add({ type: "link", href, nodes: [{ type: "text", text: found[0] }] }, found[0].length);
  }

  /** The parts from `from` on, with every delimiter paired or become text. */
  finish(from) {
    const parts = this.parts.slice(from);
    const bottoms = new Map();
    for (let at = 0; at < parts.length; at += 1) {
      const closer = parts[at];
      if (!closer?.mark || !closer.closes) continue;
      const kind = `${closer.mark}${closer.opens}${closer.whole % 3}`;
      const bottom = bottoms.get(kind) ?? -1;
      let found = at - 1;
      while (found > bottom && !pairs(parts[found], closer)) found -= 1;
      if (found <= bottom) {
        bottoms.set(kind, at - 1);
        continue;
      }
      at = wrap(parts, found, at);
    }
    return merge(parts);
  }
}

function pairs(opener, closer) {
  if (!opener?.mark || opener.mark !== closer.mark || !opener.opens || !opener.count) return false;
  const odd = (opener.closes || closer.opens) && (opener.whole + closer.whole) % 3 === 0;
  return !odd || (opener.whole % 3 === 0 && closer.whole % 3 === 0);
}

/** What stands between two delimiters becomes one node, in its place; gives where to go on. */
function wrap(parts, found, at) {
  const opener = parts[found];
  const closer = parts[at];
  const size = opener.mark === "~" ? 2 : Math.min(opener.count, closer.count) >= 2 ? 2 : 1;
  const type = opener.mark === "~" ? "del" : size === 2 ? "strong" : "em";
  const node = { type, nodes: merge(parts.slice(found + 1, at)) };
  opener.count -= size;
  closer.count -= size;
  const kept = [...(opener.count ? [opener] : []), node, ...(closer.count ? [closer] : [])];
  parts.splice(found, at - found + 1, ...kept);
  return found + kept.length - (closer.count ? 2 : 1);
}

function merge(parts) {
  const nodes = [];
  for (const part of parts) {
    const node = part.mark ? { type: "text", text: part.mark.repeat(part.count) } : part;
    const last = nodes.at(-1);
    if (node.type === "text" && last?.type === "text") {
      nodes[nodes.length - 1] = { type: "text", text: last.text + node.text };
    } else if (node.type !== "text" || node.text) nodes.push(node);
  }
  return nodes;
}

const PLAIN = "(?:[^\\s()\\\\]|\\\\.)";
const DESTINATION = new RegExp(
  `^\\s*(?:<([^<>\\n]*)>|((?:${PLAIN}|\\(${PLAIN}*\\))*))(?:\\s+(?:"[^"]*"|'[^']*'))?\\s*\\)`,
);

/** `(address "title")` at a place: the address, and where it ends. */
function destination(text, at) {
  if (text[at] !== "(") return null;
  const inside = text.slice(at + 1, at + 4096);
  const found = DESTINATION.exec(inside);
  return found ? { href: found[1] ?? found[2] ?? "", end: at + 1 + found[0].length } : null;
}
