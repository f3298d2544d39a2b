// The diff of a tool call: files with their lines, unified or side by side.

import { splitRows, unifiedRows } from "../../diff_rows.js";
import { h, replace } from "../../dom.js";
import { readPatch } from "../../fold/patch.js";
import { cutPieces, highlightLines, LONGEST } from "../../highlight/highlight.js";
import { languageOf } from "../../highlight/languages.js";
import { icon } from "../../icons.js";
import { keep, kept } from "../../storage.js";
import { safeLine, safeText } from "../../text_safety.js";
import { counted, within } from "../../words.js";
import { drawPieces } from "./code.js";
import { copyButton } from "./copy_button.js";

const FIRST = 160;
const SLICE = 800;
const LONG_LINE = 2000;
/** Diffs with longer lines get more room where there is more. */
const NARROW = 78;
const WORDS = { add: "new", delete: "deleted", move: "moved", copy: "copied" };

const wide = matchMedia("(min-width: 900px)");
const views = new Set();
let style = kept("diff", "unified");

/** Set the style of all diffs on the page. */
export function setDiffStyle(next) {
  style = next;
  keep("diff", next);
  for (const view of [...views]) {
    if (view.element.isConnected) view.draw();
    else views.delete(view);
  }
}

wide.addEventListener("change", () => setDiffStyle(style));

export class DiffView {
  element = h("div", { class: "diff" });
  #part = null;
  #files = [];
  #cut = false;
  #long = false;
  #shown = FIRST;
  #opened = new Set();
  #folder;

  #open;

  /**
   * @param {string|null} folder paths are shown relative to it
   * @param {(path: string) => void} open is called with a path that was clicked on
   * @param {string} opens what that does
   */
  constructor(folder, open, opens = "Show in the transcript") {
    this.#folder = folder;
    this.#open = { run: open, label: opens };
    views.add(this);
  }

  set(part) {
    if (part === this.#part) return;
    this.#part = part;
    views.add(this);
    const { format, text } = part.patch ?? {};
    const { files, cut } = readPatch(format === "git_patch" && typeof text === "string" ? text : "");
    this.#cut = cut;
    const changes = Array.isArray(part.changes) ? part.changes : [];
    const longest = files.flatMap(({ hunks }) => hunks.flatMap(({ lines }) => lines))
      .reduce((most, { text }) => Math.max(most, text.length), 0);
    this.#long = longest > NARROW;
    this.#files = changes.map((change, at) => ({ change, file: files[at] ?? null }));
    if (!changes.length) this.#files = files.map((file) => ({ change: file, file }));
    this.draw();
  }

  draw() {
    const split = style === "split" && wide.matches;
    let left = this.#shown;
    this.element.classList.toggle("wide", split || this.#long);
    const files = this.#files.map(({ change, file }) => {
      const [body, used] = this.#body(file, split, left);
      left = Math.max(0, left - used);
      return h("div", { class: "file", role: "group", "aria-label": safeLine(change.path ?? "", 200) },
        header(change, file, this.#part, this.#folder, this.#open), body);
    });
    const cut = this.#cut ? h("p", { class: "note" }, "The rest of this diff is not shown.") : null;
    replace(this.element, files, cut);
  }

  #body(file, split, most) {
    if (!file) return [null, 0];
    if (file.binary) return [h("p", { class: "note" }, "Binary file."), 0];
    if (!file.hunks.length) return [null, 0];
    const unified = this.#unfolded(unifiedRows(file.hunks));
    paint(file);
    const rows = split ? splitRows(unified) : unified;
    const shown = rows.slice(0, most);
    const draw = { fold: (row) => this.#fold(row), gap: drawGap, line: drawLine, pair: drawPair };
    const grid = h("div",
      { class: ["lines", split && "split"], tabindex: "0", role: "group", "aria-label": "Changes" },
      shown.map((row) => draw[row.kind](row)));
    const rest = rows.length - shown.length;
    const words = `Show ${counted(Math.min(SLICE, rest), "more line")} of ${rest}`;
    const more = rest <= 0 ? null
      : h("button", { type: "button", class: "more", onclick: () => this.#more() }, words);
    return [[grid, more], shown.length];
  }

  #unfolded(rows) {
    return rows.flatMap((row) => (row.kind === "fold" && this.#opened.has(foldKey(row)) ? row.rows : [row]));
  }

  #fold(row) {
    const open = () => {
      this.#opened.add(foldKey(row));
      this.#shown += row.rows.length;
      this.draw();
    };
    return h("button", { type: "button", class: "fold", onclick: open }, icon("unfold"),
      `${row.rows.length} unchanged lines`);
  }

  #more() {
    this.#shown += SLICE;
    this.draw();
  }
}

const foldKey = (row) => `${row.rows[0].old} ${row.rows[0].new} ${row.rows.length}`;

function header(change, file, part, folder, open) {
  const elsewhere = ["move", "copy"].includes(change.operation) && change.oldPath;
  const before = elsewhere ? safeLine(within(change.oldPath, folder), 200) : "";
  const from = elsewhere ? h("span", { class: "from" }, `${before} → `) : null;
  const word = WORDS[change.operation];
  return h("header", null,
    icon(change.operation === "delete" ? "delete" : "file"),
    h("button", { type: "button", class: "path path-link", title: `${safeLine(change.path ?? "", 400)}\n${open.label}`,
      "aria-label": `${before && `${before} → `}${safeLine(within(change.path ?? "", folder), 200)}: ${open.label}`,
      onclick: () => open.run(change.path) }, from, pathParts(within(change.path ?? "", folder))),
    word ? h("span", { class: "op" }, word) : null,
    file ? h("span", { class: "counts" }, h("span", { class: "added" }, `+${file.added}`),
      h("span", { class: "removed" }, `−${file.removed}`)) : null,
    h("span", { class: "spacer" }),
    wide.matches ? styleButton() : null,
    part.patch?.text ? copyButton(() => part.patch.text, "Copy the patch") : null);
}

/** A path in two parts, folder and name, for different styles. */
export function pathParts(path) {
  const shown = safeLine(path, 300);
  const at = Math.max(shown.lastIndexOf("/"), shown.lastIndexOf("\\")) + 1;
  return [h("span", { class: "folder" }, shown.slice(0, at)), h("span", { class: "name" }, shown.slice(at))];
}

function styleButton() {
  const split = style === "split";
  const label = split ? "Show unified" : "Show side by side";
  return h("button", { type: "button", class: "quiet style", "aria-pressed": String(split), title: label,
    onclick: () => setDiffStyle(split ? "unified" : "split") }, split ? "Unified" : "Side by side");
}

function drawGap({ label, first }) {
  return h("div", { class: ["gap", first && "first"] }, label ? safeLine(label, 200) : "⋯");
}

function drawLine(row) {
  return h("div", { class: ["line", SIGN[row.sign]] }, number(row.old), number(row.new),
    h("span", { class: "sign", "aria-hidden": "true" }, row.sign), text(row));
}

function drawPair({ left, right }) {
  const half = (row, side) => h("div", { class: ["half", row && SIGN[row.sign], !row && "none"] },
    number(row?.[side]), row ? text(row) : h("span", { class: "text" }));
  return h("div", { class: "pair" }, half(left, "old"), half(right, "new"));
}

/** Part of a line, in the colours of its language. */
function part({ source }, whole, from, to) {
  return source?.pieces ? drawPieces(cutPieces(source.pieces, from, to)) : safeText(whole.slice(from, to));
}

/** Find the colours of a file: of the lines as they were, and as they are. */
function paint(file) {
  const language = languageOf(file.path ?? file.oldPath);
  if (!language || file.painted) return;
  file.painted = true;
  for (const hunk of file.hunks) {
    for (const other of ["+", "-"]) {
      const lines = hunk.lines.filter(({ sign, text }) => sign !== other && text.length <= LONG_LINE);
      const length = lines.reduce((sum, { text }) => sum + text.length + 1, 0);
      if (length > LONGEST) continue;
      const painted = highlightLines(lines.map(({ text }) => text), language);
      lines.forEach((line, at) => {
        line.pieces = painted[at];
      });
    }
  }
}

const SIGN = { "+": "added", "-": "removed", " ": "same" };
const READ = { "+": "added: ", "-": "removed: " };

function number(value) {
  return h("span", { class: "no", "aria-hidden": "true" }, value === undefined ? "" : String(value));
}

function text(row) {
  const long = row.text.length > LONG_LINE;
  const whole = long ? row.text.slice(0, LONG_LINE) : row.text;
  const [from, to] = long || !row.mark ? [0, 0] : row.mark;
  return h("span", { class: "text" },
    READ[row.sign] ? h("span", { class: "only-read" }, READ[row.sign]) : null,
    part(row, whole, 0, from),
    to > from ? h("mark", null, part(row, whole, from, to)) : null,
    to < whole.length ? part(row, whole, to, whole.length) : "\u200a",
    long ? h("span", { class: "note" }, ` … ${row.text.length - LONG_LINE} more`) : null);
}
