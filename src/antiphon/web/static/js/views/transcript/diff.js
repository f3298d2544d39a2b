// The diff of a tool call: files with their lines, unified or side by side.

import { splitRows, unifiedRows } from "../../diff_rows.js";
import { h, replace } from "../../dom.js";
import { readPatch } from "../../fold/patch.js";
import { icon } from "../../icons.js";
import { keep, kept } from "../../storage.js";
import { safeLine, safeText } from "../../text_safety.js";
import { counted, within } from "../../words.js";
import { copyButton } from "./copy_button.js";

const FIRST = 160;
const SLICE = 800;
const LONG_LINE = 2000;
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
  #shown = FIRST;
  #opened = new Set();
  #folder;

  /** @param {string|null} folder paths are shown relative to it */
  constructor(folder) {
    this.#folder = folder;
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
    this.#files = changes.map((change, at) => ({ change, file: files[at] ?? null }));
    if (!changes.length) this.#files = files.map((file) => ({ change: file, file }));
    this.draw();
  }

  draw() {
    const split = style === "split" && wide.matches;
    let left = this.#shown;
    const files = this.#files.map(({ change, file }) => {
      const [body, used] = this.#body(file, split, left);
      left = Math.max(0, left - used);
      return h("section", { class: "file", "aria-label": safeLine(change.path ?? "", 200) },
        header(change, file, this.#part, this.#folder), body);
    });
    const cut = this.#cut ? h("p", { class: "note" }, "The rest of this diff is not shown.") : null;
    replace(this.element, files, cut);
  }

  #body(file, split, most) {
    if (!file) return [null, 0];
    if (file.binary) return [h("p", { class: "note" }, "Binary file."), 0];
    if (!file.hunks.length) return [null, 0];
    const unified = this.#unfolded(unifiedRows(file.hunks));
    const rows = split ? splitRows(unified) : unified;
    const shown = rows.slice(0, most);
    const draw = { fold: (row) => this.#fold(row), gap: drawGap, line: drawLine, pair: drawPair };
    const grid = h("div",
      { class: ["lines", split && "split"], tabindex: "0", role: "region", "aria-label": "Changes" },
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

function header(change, file, part, folder) {
  const elsewhere = ["move", "copy"].includes(change.operation) && change.oldPath;
  const before = elsewhere ? safeLine(within(change.oldPath, folder), 200) : "";
  const from = elsewhere ? h("span", { class: "from" }, `${before} → `) : null;
  const word = WORDS[change.operation];
  return h("header", null,
    icon(change.operation === "delete" ? "delete" : "file"),
    h("span", { class: "path", title: safeLine(change.path ?? "", 400) },
      from, pathParts(within(change.path ?? "", folder))),
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
    safeText(whole.slice(0, from)),
    to > from ? h("mark", null, safeText(whole.slice(from, to))) : null,
    safeText(whole.slice(to)) || "\u200a",
    long ? h("span", { class: "note" }, ` … ${row.text.length - LONG_LINE} more`) : null);
}
