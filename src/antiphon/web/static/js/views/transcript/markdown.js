// Markdown as nodes. Streamed text is drawn from the last block on; earlier blocks are not touched.

import { h, textNode } from "../../dom.js";
import { languageNamed } from "../../highlight/languages.js";
import { icon } from "../../icons.js";
import { parseBlocks, weightOf } from "../../markdown/blocks.js";
import { parseInline } from "../../markdown/inline.js";
import { printedText, safeLine } from "../../text_safety.js";
import { drawCode } from "./code.js";
import { drawMath } from "./math.js";
import { copyButton } from "./copy_button.js";
import { Slices } from "./slices.js";

const drawn = new WeakMap();
/** Elements for one part of a text. Text that needs more is shown as plain text. */
const HEAVIEST = 4000;

/** Draw a text into an element. If the text has grown, draw only the new part. */
export function drawMarkdown(element, text) {
  const before = drawn.get(element);
  const goesOn = before && text.length >= before.text.length && text.startsWith(before.text);
  if (goesOn && text.length === before.text.length) return;
  const stable = goesOn ? before.stable : 0;
  const keep = goesOn ? before.count : 0;
  if (goesOn && before.plain) return drawPlain(element, text);
  const shown = printedText(text.slice(stable));
  const found = parseBlocks(shown);
  const weights = found.map(({ block }) => weightOf(block));
  const weight = weights.reduce((sum, each) => sum + each, goesOn ? before.weight : 0);
  if (weight > HEAVIEST) return drawPlain(element, text);
  while (element.childNodes.length > keep) element.lastChild.remove();
  for (const { block } of found) element.append(drawBlock(block));
  // Offsets are valid only if safe text has the same length, i.e. nothing was replaced.
  const same = shown.length === text.length - stable;
  const last = same && found.length > 1 ? found.at(-1).start : 0;
  const count = last ? keep + found.length - 1 : keep;
  const settled = last ? weight - weights.at(-1) : goesOn ? before.weight : 0;
  drawn.set(element, { text, stable: stable + last, count, weight: settled });
}

/** Draw a text that would need too many elements as plain text. */
function drawPlain(element, text) {
  element.replaceChildren(h("pre", { class: "plain" }, printedText(text)));
  drawn.set(element, { text, plain: true });
}

/** Markdown of any length, in slices. */
export class Prose {
  #slices = new Slices(drawMarkdown);
  element = this.#slices.element;

  constructor() {
    this.element.classList.add("prose");
  }

  set(text) {
    this.#slices.set(text);
  }
}

function drawBlock(block) {
  switch (block.type) {
    case "heading":
      // Two levels below the headings of the page.
      return h(`h${Math.min(6, block.level + 2)}`, { class: `h${block.level}` }, inline(block.text));
    case "code":
      return codeBlock(block.text, block.info);
    case "quote":
      return h("blockquote", null, block.blocks.map(drawBlock));
    case "list":
      return drawList(block);
    case "table":
      return drawTable(block);
    case "rule":
      return h("hr");
    case "math":
      return drawMath(block);
    default:
      return h("p", null, inline(block.text));
  }
}

function drawList({ ordered, first, tight, items }) {
  const tasks = items.some((item) => item.task !== null);
  const list = h(ordered ? "ol" : "ul", { class: [tight && "tight", tasks && "tasks"],
    start: ordered && first !== 1 ? first : null });
  for (const { task, blocks } of items) {
    const bare = (block) => tight && block.type === "paragraph";
    const content = blocks.map((block) => (bare(block) ? inline(block.text) : drawBlock(block)));
    const box = task === null ? null : h("span", { class: ["box", task && "done"], role: "img",
      "aria-label": task ? "done" : "to do" }, task ? icon("check") : null);
    list.append(h("li", { class: task === null ? null : "task" }, box, content));
  }
  return list;
}

function drawTable({ aligns, head, rows }) {
  const cell = (tag) => (text, at) =>
    h(tag, { class: aligns[at] && `to-${aligns[at]}`, scope: tag === "th" && "col" }, inline(text));
  return h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", null,
    h("thead", null, h("tr", null, head.map(cell("th")))),
    h("tbody", null, rows.map((row) => h("tr", null, row.map(cell("td")))))));
}

/** A code block with its language and a copy button. */
export function codeBlock(text, info = "") {
  const language = languageNamed(info.split(/[\s{,]/)[0]);
  const code = new Slices((element, part) => drawCode(element, part, language));
  code.set(text);
  code.element.classList.add("code-text");
  const name = safeLine(info.split(/\s/)[0] ?? "", 24);
  return h("figure", { class: "code" },
    h("figcaption", null, h("span", null, name || "text"), copyButton(() => text, "Copy the code")),
    h("pre", { tabindex: "0" }, code.element));
}

function inline(text) {
  return parseInline(text).map(drawInline);
}

function drawInline(node) {
  switch (node.type) {
    case "code":
      return h("code", null, node.text);
    case "em":
    case "strong":
    case "del":
      return h(node.type, null, node.nodes.map(drawInline));
    case "link":
      return link(node.href, node.nodes.map(drawInline));
    case "image":
      // Nothing is fetched from an address of the agent: it would reveal the reader.
      return link(node.href, [icon("image"), node.alt || "image"], "picture");
    case "math":
      return drawMath(node);
    case "break":
      return h("br");
    default:
      return textNode(node.text);
  }
}

/** A link in a new tab, or plain text if the address is not allowed. */
export function link(href, children, className = null) {
  if (!href) return h("span", { class: ["dead-link", className] }, children);
  const out = { target: "_blank", rel: "noopener noreferrer", title: href.slice(0, 300) };
  return h("a", { href, class: className, ...out }, children);
}

