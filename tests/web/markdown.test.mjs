// Markdown is read into blocks and nodes; nothing an agent writes becomes anything else, or takes for ever.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBlocks } from "../../src/antiphon/web/static/js/markdown/blocks.js";
import { parseInline, safeAddress } from "../../src/antiphon/web/static/js/markdown/inline.js";

const blocks = (text) => parseBlocks(text).map(({ block }) => block);
const text = (value) => ({ type: "text", text: value });
const paragraph = (value) => ({ type: "paragraph", text: value });

test("headings, paragraphs and rules", () => {
  assert.deepEqual(blocks("# One\ntwo\nthree\n\n***\nFour\n===\n"), [
    { type: "heading", level: 1, text: "One" }, paragraph("two\nthree"), { type: "rule" },
    { type: "heading", level: 1, text: "Four" },
  ]);
});

test("code keeps what is in it, and is open until its fence ends", () => {
  assert.deepEqual(blocks("```py\n# no heading\n\n  - no list\n```\nafter"), [
    { type: "code", info: "py", text: "# no heading\n\n  - no list", closed: true }, paragraph("after"),
  ]);
  assert.deepEqual(blocks("~~~\nhalf"), [{ type: "code", info: "", text: "half", closed: false }]);
});

test("lists nest, go on over lines, and have tasks", () => {
  const [list] = blocks("1. one\n2. two:\n   - a\n   - b\n\n     more of b\n3. [x] three\n");
  assert.equal(list.ordered, true);
  assert.equal(list.items.length, 3);
  assert.deepEqual(list.items[1].blocks[0], paragraph("two:"));
  assert.deepEqual(list.items[1].blocks[1].items.map((item) => item.blocks.length), [1, 2]);
  assert.deepEqual(list.items.map((item) => item.task), [null, null, true]);
});

test("a list ends where another kind of it begins", () => {
  assert.deepEqual(blocks("- a\n* b\n").map((list) => list.items.length), [1, 1]);
  assert.equal(blocks("- a\n\nnot of it")[1].text, "not of it");
});

test("tables have their alignments and as many cells as their heads", () => {
  const [table] = blocks("| a | b |\n|:--|--:|\n| 1 \\| 2 | `x` | more |\n| 3 |\n");
  assert.deepEqual(table, { type: "table", aligns: ["left", "right"], head: ["a", "b"],
    rows: [["1 | 2", "`x`"], ["3", ""]] });
});

test("quotes hold blocks", () => {
  assert.deepEqual(blocks("> # h\n> text\nlazy"), [
    { type: "quote", blocks: [{ type: "heading", level: 1, text: "h" }, paragraph("text\nlazy")] },
  ]);
});

test("emphasis, code and strikes", () => {
  assert.deepEqual(parseInline("a **b *c*** `**d**` ~~e~~ snake_case_name"), [
    text("a "), { type: "strong", nodes: [text("b "), { type: "em", nodes: [text("c")] }] }, text(" "),
    { type: "code", text: "**d**" }, text(" "), { type: "del", nodes: [text("e")] }, text(" snake_case_name"),
  ]);
  assert.deepEqual(parseInline("2 * 3 * 4 and **open"), [text("2 * 3 * 4 and **open")]);
});

test("links lead to the web and to mail, and nowhere else", () => {
  const [link] = parseInline("[*x*](https://example.com/a_(b) \"title\")");
  assert.equal(link.href, "https://example.com/a_(b)");
  assert.deepEqual(link.nodes, [{ type: "em", nodes: [text("x")] }]);
  for (const bad of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x",
      "file:///etc/passwd",
    "//evil.example", "/here", "blob:x", "\tjavascript:alert(1)", "java\nscript:alert(1)"]) {
    assert.equal(safeAddress(bad), null, bad);
    assert.ok(parseInline(`[x](${bad})`).every((node) => !node.href), bad);
  }
  assert.equal(safeAddress("mailto:a@example.com"), "mailto:a@example.com");
});

test("bare addresses are links, without the full stop behind them", () => {
  assert.deepEqual(parseInline("see https://example.com/x."), [
    text("see "), { type: "link", href: "https://example.com/x", nodes: [text("https://example.com/x")] },
        text("."),
  ]);
});

test("tags are words", () => {
  assert.deepEqual(parseInline("<script>alert(1)</script>"), [text("<script>alert(1)</script>")]);
});

test("what is made to take for ever does not", () => {
  const hostile = ["[", "*a ", "**a", "![", "](", "`a``", "<http://", "*_", "_a_", "[a](", "> ", "- ",
      "a|b\n", "~~", "\\",
    "  \n", "1. ", "# "];
  for (const piece of hostile) {
    const long = piece.repeat(Math.ceil(40_000 / piece.length));
    const began = performance.now();
    parseBlocks(long);
    parseInline(long);
    assert.ok(performance.now() - began < 2000, piece);
  }
});

test("places are where blocks begin and end, so that a text that grows is read from its last block on",
    () => {
  const whole = "# a\n\nb\nc\n\n- d\n";
  for (const { start, end, block } of parseBlocks(whole)) {
    assert.deepEqual(parseBlocks(whole.slice(start, end)).map((one) => one.block), [block]);
  }
});
