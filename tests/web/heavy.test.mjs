// Markdown that is made to take long: time grows with its length, and what is drawn of it is bounded.

import assert from "node:assert/strict";
import { test } from "node:test";

import { parseBlocks, weightOf } from "../../src/antiphon/web/static/js/markdown/blocks.js";
import { parseInline } from "../../src/antiphon/web/static/js/markdown/inline.js";

const LONG = 300_000;
const spaces = " ".repeat(LONG);

const LINES = {
  "a heading with many spaces": `# a${spaces}b`,
  "a heading with many hashes": `# a ${"#".repeat(LONG)}b`,
  "spaces and hashes": `# ${"# ".repeat(LONG)}b`,
  "dashes with many spaces": `a|b\n-${spaces}x`,
  "dashes and bars": `a|b\n${"-|".repeat(LONG)}x`,
  "stars with many spaces": `* *${spaces}x`,
  "many stars": `${"* ".repeat(LONG)}x`,
  "an item with many spaces": `-${spaces}x`,
  "a fence with many spaces": `\`\`\`${spaces}\`x`,
  "underlines with many spaces": `a\n-${spaces}x`,
  "one line": "x".repeat(10_000_000),
  "bars": "|".repeat(LONG),
  "quotes": "> ".repeat(LONG),
  "quotes of many lines": "> > > > > > > > > > > > > > x\n".repeat(5_000),
  "lists of many levels": Array.from({ length: 2_000 }, (_, depth) => " ".repeat(2 * (depth % 40)) + "- x").join("\n"),
};

for (const [name, text] of Object.entries(LINES))
  test(name, { timeout: 20_000 }, () => assert.ok(parseBlocks(text).length > 0));

const INLINE = {
  "code that begins with a space": `\` ${"x".repeat(LONG)}\``,
  "code of spaces": `\`${spaces}x${spaces}\``,
  "addresses without an end": "https://".repeat(LONG / 10),
  "an address of points": `https://${".".repeat(LONG)}`,
  "addresses of points": `https://${".".repeat(30)} `.repeat(LONG / 40),
  "less-than signs": "<http://".repeat(LONG / 10),
  "backticks": Array.from({ length: 700 }, (_, size) => "`".repeat(size)).join(" "),
};

for (const [name, text] of Object.entries(INLINE))
  test(name, { timeout: 20_000 }, () => assert.ok(parseInline(text).length > 0));

test("a heading loses its closing hashes and keeps others", () => {
  const heading = (text) => parseBlocks(text)[0].block.text;
  assert.equal(heading("# One ##"), "One");
  assert.equal(heading("# C#"), "C#");
  assert.equal(heading("#  One \\#  "), "One \\#");
  assert.equal(heading("# #"), "");
  assert.equal(heading("##"), "");
});

test("weight counts what would be drawn", () => {
  const weight = (text) => parseBlocks(text).reduce((sum, { block }) => sum + weightOf(block), 0);
  assert.ok(weight("- a\n".repeat(12_000)) >= 12_000);
  assert.ok(weight("```\n```\n".repeat(6_000)) >= 6_000);
  assert.ok(weight(`|a|b|\n|-|-|\n${"|1|2|\n".repeat(5_000)}`) >= 10_000);
  assert.ok(weight("Hello\n\n- a\n- b") < 10);
});
