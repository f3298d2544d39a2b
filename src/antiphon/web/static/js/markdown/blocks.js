// Blocks of Markdown: what a text is made of, and where each begins and ends in it. Pure, one pass over it.
//
// Blocks: {type: "heading", level, text} | {type: "paragraph", text} | {type: "code", info, text, closed}
//   | {type: "quote", blocks} | {type: "list", ordered, first, tight, items: {task, blocks}[]}
//   | {type: "table", aligns, head, rows} | {type: "rule"}
//   | {type: "math", tree, source, display}

import { formulaBlock } from "./formulas.js";
import { parseMath } from "./math.js";

const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})\s*(.*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t](.*))?$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]+)(.*)|[ \t]*)$/;
const QUOTE = /^ {0,3}> ?/;
const SETEXT = /^ {0,3}(=+|-+)[ \t]*$/;
const FORMULA = /^ {0,3}(?:\$\$|\\\[)[ \t]*$/;
const DASHES = /^:?-+:?$/;
const TASK = /^\[([ xX])\][ \t]+/;
const DEEPEST = 12;
const MOST_COLUMNS = 64;

/** @returns {{start: number, end: number, block: object}[]} the blocks of the outermost level */
export function parseBlocks(text) {
  const lines = [];
  for (let at = 0; at <= text.length; ) {
    let end = text.indexOf("\n", at);
    if (end < 0) end = text.length;
    lines.push({ text: text.slice(at, end).replace(/\t/g, "    "), start: at, end });
    at = end + 1;
  }
  return new Reader(lines, 0).read();
}

class Reader {
  constructor(lines, depth) {
    this.lines = lines;
    this.depth = depth;
    this.at = 0;
    this.stops = {};
  }

  read() {
    const found = [];
    while (this.at < this.lines.length) {
      const line = this.lines[this.at];
      if (!line.text.trim()) {
        this.at += 1;
        continue;
      }
      const block = this.next(line.text);
      found.push({ start: line.start, end: this.lines[this.at - 1].end, block });
    }
    return found;
  }

  get line() {
    return this.lines[this.at]?.text;
  }

  next(text) {
    let found;
    if ((found = FENCE.exec(text))) return this.fence(found);
    if ((found = HEADING.exec(text))) {
      return this.one({ type: "heading", level: found[1].length, text: headingText(found[2] ?? "") });
    }
    if (RULE.test(text)) return this.one({ type: "rule" });
    if (QUOTE.test(text) && this.depth < DEEPEST) return this.quote();
    if ((found = ITEM.exec(text)) && this.depth < DEEPEST) return this.list(found);
    if (/^ {4}/.test(text)) return this.indented();
    const formula = formulaBlock((ahead) => this.lines[this.at + ahead]?.text, (closer) => this.stopOf(closer));
    if (formula) return this.formula(formula);
    const next = this.lines[this.at + 1]?.text ?? "";
    return (text.includes("|") && isDashes(next) ? this.table() : null) ?? this.paragraph();
  }

  formula({ source, lines }) {
    this.at += lines;
    return { type: "math", tree: parseMath(source, true), source, display: true };
  }

  /** Count the lines to the next one that has the closer, is blank or is missing. Many openers may have the
   * same stop, so it is looked for once. */
  stopOf(closer) {
    let stop = Math.max(this.stops[closer] ?? 0, this.at + 1);
    while (this.lines[stop]?.text.trim() && !this.lines[stop].text.includes(closer)) stop += 1;
    this.stops[closer] = stop;
    return stop - this.at;
  }

  one(block) {
    this.at += 1;
    return block;
  }

  fence([whole, mark, info]) {
    const indent = /^ */.exec(whole)[0].length;
    const end = new RegExp(`^ {0,3}\\${mark[0]}{${mark.length},}[ \\t]*$`);
    const lines = [];
    this.at += 1;
    for (; this.line !== undefined; this.at += 1) {
      if (end.test(this.line)) {
        this.at += 1;
        return { type: "code", info: info.trim(), text: lines.join("\n"), closed: true };
      }
      lines.push(this.line.replace(new RegExp(`^ {0,${indent}}`), ""));
    }
    return { type: "code", info: info.trim(), text: lines.join("\n"), closed: false };
  }

  indented() {
    const lines = [];
    while (this.line !== undefined && (/^ {4}/.test(this.line) || !this.line.trim())) {
      lines.push(this.line.slice(4));
      this.at += 1;
    }
    while (lines.length && !lines.at(-1).trim()) {
      lines.pop();
      this.at -= 1;
    }
    return { type: "code", info: "", text: lines.join("\n"), closed: true };
  }

  quote() {
    const lines = [];
    for (; this.line?.trim(); this.at += 1) {
      const line = this.lines[this.at];
      if (QUOTE.test(line.text)) lines.push({ ...line, text: line.text.replace(QUOTE, "") });
      else if (this.interrupts(line.text)) break;
      else lines.push(line);
    }
    return { type: "quote", blocks: this.inside(lines) };
  }

  inside(lines) {
    return new Reader(lines, this.depth + 1).read().map(({ block }) => block);
  }

  list([, , marker]) {
    const bullet = marker.slice(-1);
    const ordered = /\d/.test(marker);
    const items = [];
    let tight = true;
    while (this.line !== undefined) {
      const found = ITEM.exec(this.line);
      if (!found || found[2].slice(-1) !== bullet || RULE.test(this.line)) break;
      const [lines, loose] = this.item(found);
      const blank = lines.length > 1 && !lines.at(-1).text.trim();
      while (lines.length && !lines.at(-1).text.trim()) lines.pop();
      const task = TASK.exec(lines[0]?.text ?? "");
      if (task) lines[0] = { ...lines[0], text: lines[0].text.slice(task[0].length) };
      items.push({ task: task ? task[1] !== " " : null, blocks: this.inside(lines) });
      const more = ITEM.exec(this.line ?? "")?.[2].slice(-1) === bullet;
      if (loose || (blank && more)) tight = false;
    }
    return { type: "list", ordered, first: ordered ? Number.parseInt(marker, 10) : 1, tight, items };
  }

  /** The lines of one item, without its indent; and whether blank lines part what is in it. */
  item([, indent, marker, space]) {
    const wide = space && space.length <= 4 ? space.length : 1;
    const width = indent.length + marker.length + wide;
    const pad = new RegExp(`^ {${width}}`);
    const first = this.lines[this.at];
    const lines = [{ ...first, text: first.text.slice(width) }];
    let loose = false;
    let blank = false;
    for (this.at += 1; this.line !== undefined; this.at += 1) {
      const line = this.lines[this.at];
      if (!line.text.trim()) {
        blank = true;
        lines.push({ ...line, text: "" });
      } else if (pad.test(line.text)) {
        if (blank) loose = true;
        blank = false;
        lines.push({ ...line, text: line.text.slice(width) });
      } else if (blank || ITEM.test(line.text) || this.interrupts(line.text)) break;
      else lines.push(line);
    }
    return [lines, loose];
  }

  table() {
    const head = cells(this.line);
    const aligns = cells(this.lines[this.at + 1].text).map((dashes) => {
      const [left, right] = [dashes.startsWith(":"), dashes.endsWith(":")];
      return right ? (left ? "center" : "right") : left ? "left" : null;
    });
    if (head.length !== aligns.length || head.length > MOST_COLUMNS) return null;
    const rows = [];
    for (this.at += 2; this.line?.trim() && !this.interrupts(this.line); this.at += 1) {
      const row = cells(this.line).slice(0, head.length);
      while (row.length < head.length) row.push("");
      rows.push(row);
    }
    return { type: "table", aligns, head, rows };
  }

  paragraph() {
    const lines = [];
    for (; this.line?.trim(); this.at += 1) {
      const setext = lines.length ? SETEXT.exec(this.line) : null;
      if (setext) {
        this.at += 1;
        return { type: "heading", level: setext[1][0] === "=" ? 1 : 2, text: lines.join("\n").trim() };
      }
      if (lines.length && this.interrupts(this.line)) break;
      if (lines.length && this.line.includes("|") && isDashes(this.lines[this.at + 1]?.text ?? "")) break;
      lines.push(this.line.trimStart());
    }
    return { type: "paragraph", text: lines.join("\n").trimEnd() };
  }

  /** Whether a line ends a paragraph without a blank one. */
  interrupts(text) {
    if (FENCE.test(text) || HEADING.test(text) || RULE.test(text) || FORMULA.test(text)) return true;
    if (this.depth >= DEEPEST) return false;
    const item = ITEM.exec(text);
    if (item !== null && this.depth > 0) return true;
    return QUOTE.test(text) || (item !== null && Boolean(item[4]) && !/^(?:0|[2-9]|\d\d+)[.)]/.test(item[2]));
  }
}

/** The text of a heading without the hashes that may close it. */
function headingText(given) {
  const text = given.trim();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return end === 0 || /[ \t]/.test(text[end - 1]) ? text.slice(0, end).trimEnd() : text;
}

/** Whether a line parts the head of a table from its rows. */
function isDashes(line) {
  return /^ {0,3}[|:-]/.test(line) && cells(line).every((cell) => DASHES.test(cell));
}

/** About how many elements a block is drawn with. */
export function weightOf(block) {
  const all = (blocks) => blocks.reduce((sum, each) => sum + weightOf(each), 0);
  if (block.type === "code") return 8 + Math.min(block.text.length, 40_000) / 20; // with its button and colours
  if (block.type === "math") return 20 + block.source.length / 4;
  if (block.type === "quote") return 1 + all(block.blocks);
  if (block.type === "list") return block.items.reduce((sum, item) => sum + 1 + all(item.blocks), 1);
  if (block.type === "table") return (block.rows.length + 1) * (block.head.length + 1);
  return 1;
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.replace(/\\\|/g, "|").trim());
}
