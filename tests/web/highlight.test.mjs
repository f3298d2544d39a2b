// Code is parted into pieces of a kind, without losing a letter, and no text takes long.

import assert from "node:assert/strict";
import { test } from "node:test";
import { cutPieces, highlight, highlightLines, LONGEST } from
  "../../src/antiphon/web/static/js/highlight/highlight.js";
import { languageNamed, languageOf } from "../../src/antiphon/web/static/js/highlight/languages.js";

const whole = (pieces) => pieces.map(({ text }) => text).join("");
const kinds = (text, name) => highlight(text, languageNamed(name)).filter(({ kind }) => kind)
  .map(({ kind, text: part }) => `${kind} ${part}`);

const SAMPLES = {
  python: ['@cached\ndef f(x: int) -> str:  # why\n    return f"{x}" + \'\'\'a\nb\'\'\'\n', ["meta @cached",
    "keyword def", "function f", "type int", "type str", "comment # why", "keyword return", 'string f"{x}"',
    "string '''a\nb'''"]],
  ts: ["const a: number = /x\\/y/g.test(`t${1}`) ? 0x1f : null; // end", ["keyword const", "type number",
    "string /x\\/y/g", "function test", "string `t${1}`", "number 0x1f", "value null", "comment // end"]],
  json: ['{"a": [1, -2.5, true], "b": "c"}', ['property "a"', "number 1", "number -2.5", "value true",
    'property "b"', 'string "c"']],
  sh: ["cd \"$HOME\" && npm run --silent x # go", ["type cd", 'string "$HOME"', "type npm",
    "property --silent", "comment # go"]],
  c: ['#include <a.h>\nint main(void) { return 0; } /* x */', ["meta #include", "type int", "function main",
    "type void", "keyword return", "number 0", "comment /* x */"]],
  go: ["func F() error { return nil }", ["keyword func", "function F", "type error", "keyword return",
    "value nil"]],
  rust: ["pub fn f(x: &'a str) -> u8 { 'x' }", ["keyword pub", "keyword fn", "function f", "meta 'a",
    "type str", "type u8", "string 'x'"]],
  html: ['<a href="x">b</a><!-- c -->', ["tag <a", "property href", 'string "x"', "tag >", "tag </a", "tag >",
    "comment <!-- c -->"]],
  css: [".a { color: #fff; margin: 2px }", ["tag .a", "property color", "value #fff",
    "property margin", "number 2px"]],
  yaml: ["a: true # x\n- b: 'c'", ["property a:", "value true", "comment # x", "property - b:", "string 'c'"]],
  toml: ['[x]\na = 1\n', ["tag [x]", "property a", "number 1"]],
  sql: ["SELECT a FROM t WHERE b = 'x''y' -- z", ["keyword SELECT", "keyword FROM", "keyword WHERE",
    "string 'x''y'", "comment -- z"]],
  markdown: ["# H\n- `a` **b**", ["heading # H", "keyword - ", "string `a`", "value **b**"]],
  diff: ["@@ -1 +1 @@\n-a\n+b\n", ["meta @@ -1 +1 @@", "deleted -a", "inserted +b"]],
};

for (const [name, [text, expected]] of Object.entries(SAMPLES)) {
  test(`${name} is told apart`, () => {
    assert.deepEqual(kinds(text, name), expected);
    assert.equal(whole(highlight(text, languageNamed(name))), text);
  });
}

test("languages are known by the info of a fence and by the names of files", () => {
  assert.equal(languageNamed("TypeScript"), languageOf("/a/b.tsx"));
  assert.equal(languageOf("C:\\a\\Makefile"), languageNamed("sh"));
  assert.deepEqual([languageNamed("klingon"), languageNamed(undefined), languageOf("/a/LICENSE"),
    languageNamed("constructor")], [null, null, null, null]);
});

test("lines and parts of lines keep their colours", () => {
  const lines = highlightLines(["a = '''x", "y''' # z"], languageNamed("py"));
  assert.deepEqual(lines.map((pieces) => pieces.map(({ kind, text }) => [kind, text])), [
    [[null, "a = "], ["string", "'''x"]], [["string", "y'''"], [null, " "], ["comment", "# z"]]]);
  assert.deepEqual(cutPieces(lines[1], 2, 7), [{ kind: "string", text: "''" }, { kind: null, text: " " },
    { kind: "comment", text: "# " }]);
});

test("no text takes long, or loses a letter", () => {
  const pieces = ["'", '"', "`", "\\", '\\"', "/", "/*", "//", "#", "<", "<!--", "<a b=", "-", " ", "\t", "a:",
    "a ", "[", "](", "**", "1", "1.", "_", "$", "${", "@", "'''", '"""', "\\\n", "x'", "a(", ":", "=/", "{"];
  for (const name of Object.keys(SAMPLES)) {
    for (const piece of pieces) {
      for (const more of ["\\", "!"]) {
        const text = piece.repeat(LONGEST / 3 / piece.length) + more;
        const began = process.cpuUsage().user;
        assert.equal(whole(highlight(text, languageNamed(name))), text);
        assert.ok(process.cpuUsage().user - began < 1_000_000, `${name} ${JSON.stringify(piece)}`);
      }
    }
  }
});
