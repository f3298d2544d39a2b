// Formulas become trees for MathML; what is not known, and what is none, stays text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBlocks } from "../../src/antiphon/web/static/js/markdown/blocks.js";
import { parseInline } from "../../src/antiphon/web/static/js/markdown/inline.js";
import { parseMath } from "../../src/antiphon/web/static/js/markdown/math.js";

/** A tree as one line: tag(children), and texts as they are. */
const line = ({ tag, text, children }) => (text !== undefined ? text : `${tag}(${children.map(line).join(" ")})`);
const shown = (source, display) => {
  const tree = parseMath(source, display);
  return tree && tree.children.map(line).join(" ");
};

const FORMULAS = {
  "\\frac{a}{b+1}": "mfrac(a mrow(b + 1))",
  "\\sqrt[3]{x} + \\sqrt 2": "mroot(x 3) + msqrt(2)",
  "x_1^2 - y^{n+1}": "msubsup(x 1 2) − msup(y mrow(n + 1))",
  "x^12": "msup(x 1) 2",
  "f'(x)": "msup(f ′) ( x )",
  "\\alpha\\le\\beta": "α ≤ β",
  "\\sum_{i=0}^n i": "msubsup(∑ mrow(i = 0) n) i",
  "\\int_0^\\infty e^{-x}\\,dx": "msubsup(∫ 0 ∞) msup(e mrow(− x)) mspace() d x",
  "\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}":
    "mrow(( mtable(mtr(mtd(a) mtd(b)) mtr(mtd(c) mtd(d))) ))",
  "\\begin{cases} 1 & \\text{if } x>0 \\\\ 0 \\end{cases}":
    "mrow({ mtable(mtr(mtd(1) mtd(if  x > 0)) mtr(mtd(0))))",
  "\\left( \\frac{1}{2} \\right]": "mrow(( mfrac(1 2) ])",
  "\\mathbb{R}^n, \\mathbf{x}": "msup(ℝ n) , 𝐱",
  "\\operatorname{rank} A \\text{ for all } x": "rank A  for all  x",
  "\\vec{v} \\cdot \\hat x": "mover(v →) ⋅ mover(x ^)",
  "\\lim_{x \\to 0} \\sin x": "msub(lim mrow(x → 0)) sin x",
  "\\binom{n}{k}": "mrow(( mfrac(n k) ))",
  "\\unknowncommand x": null,
  "\\frac{a": null,
  "a } b": null,
  "\\constructor": null,
  "\\begin{constructor} a \\end{constructor}": null,
};

for (const [source, expected] of Object.entries(FORMULAS)) {
  test(`${source} is ${expected === null ? "not understood" : "understood"}`, () => {
    assert.equal(shown(source), expected);
  });
}

test("sums have their limits above and below where they stand by themselves", () => {
  assert.equal(shown("\\sum_{i}^n i", true), "munderover(∑ i n) i");
  assert.equal(parseMath("x", true).attributes.display, "block");
});

test("a formula that is not understood is its source, and is not read as anything else", () => {
  assert.deepEqual(parseInline("so \\(\\what_x_ * *y*\\) it"), [{ type: "text", text: "so \\(\\what_x_ * *y*\\) it" }]);
});

const kinds = (text) => parseInline(text).map((node) => (node.type === "math" ? `[${node.source}]` : node.text));

test("formulas are found in a line", () => {
  assert.deepEqual(kinds("if $a^2$ or \\(b\\) then $$c$$."), ["if ", "[a^2]", " or ", "[b]", " then ", "[c]", "."]);
  assert.deepEqual(kinds("$x$, $n-1$ and $f(x)$"), ["[x]", ", ", "[n-1]", " and ", "[f(x)]"]);
});

test("prices, variables and what is escaped stay text", () => {
  for (const text of ["$5 and $10", "from $5 to 10$", "US$5 or $6", "$HOME/bin:$PATH", "${a} and ${b}",
    "costs $20-$30.", "a $ b $ c", "\\$x\\$", "$100$", "echo $x_1 $y", "$(date) $(pwd)", "$\\unknown{x}$"]) {
    const found = parseInline(text);
    assert.ok(found.every((node) => node.type === "text"), text);
    assert.equal(found.map((node) => node.text).join(""), text.replaceAll("\\$", "$"));
  }
});

test("formulas stand by themselves over lines, and end paragraphs", () => {
  const blocks = (text) => parseBlocks(text).map(({ block }) => [block.type, block.source ?? block.text]);
  assert.deepEqual(blocks("so\n$$\na\n- b = c\n$$\nand\n\\[ x \\]\n"),
    [["paragraph", "so"], ["math", "a\n- b = c"], ["paragraph", "and\n\\[ x \\]"]]);
  assert.deepEqual(blocks("$$ x $$\n\n\\[\ny\n\\]"), [["math", "x"], ["math", "y"]]);
  assert.deepEqual(blocks("$$\nnever closed"), [["paragraph", "$$\nnever closed"]]);
  assert.equal(parseBlocks("$$ \\what x $$")[0].block.tree, null);
});

test("no formula takes long", () => {
  for (const piece of ["$", "$$", "\\(", "\\[", "{", "\\frac", "\\left(", "^", "_", "x^", "\\sqrt{", "$x", "$x$",
    "\\begin{matrix}", "&", "\\\\", "$\\{", "'", "\\text{"]) {
    const text = piece.repeat(30_000 / piece.length);
    const began = process.cpuUsage().user;
    parseInline(text);
    parseBlocks(text);
    parseMath(text.slice(0, 2000));
    parseMath(text.slice(0, 1999), true);
    assert.ok(process.cpuUsage().user - began < 1_500_000, piece);
  }
});

test("formulas that nobody closes take about as long as other lines", () => {
  const cost = (text) => {
    const began = process.cpuUsage().user;
    parseBlocks(text);
    return process.cpuUsage().user - began;
  };
  for (const piece of ["\\[\n", "$$ x\n", "> \\[\n", "\\[\na\n"]) {
    const text = piece.repeat(12_000);
    const plain = text.replace(/\\\[|\$\$/g, "ab");
    cost(text.slice(0, 1000));
    // The machine may be busy, and its clock may count in steps of some milliseconds.
    const ours = Math.min(cost(text), cost(text), cost(text));
    const usual = Math.max(cost(plain), cost(plain), cost(plain), 4000);
    assert.ok(ours < 30 * usual, `${piece}: ${ours} to ${usual}`);
  }
});

test("a formula ends with the first line that has its end", () => {
  const types = (text) => parseBlocks(text).map(({ block }) => block.type);
  assert.deepEqual(types("\\[\na\n\\] b\n\\]"), ["paragraph"]);
  assert.deepEqual(types("\\[\n\\[\na\n\\]"), ["math"]);
  assert.deepEqual(types(`$$\n${"a\n".repeat(1001)}$$`).includes("math"), false);
  assert.deepEqual(types("$$\na\n\n$$\nb\n$$"), ["paragraph", "math"]);
});
