// Terminals: colours stay, everything else an escape can do is dropped, however the pieces are cut.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Screen, restyled } from "../../src/antiphon/web/static/js/ansi.js";

function shown(...pieces) {
  const screen = new Screen();
  for (const piece of pieces) screen.feed(piece);
  return [...screen.lines, screen.last].map((spans) => spans.map(({ text, style }) =>
    (Object.keys(style).length ? [text, style] : text)));
}

test("colours of 16, of 256 and of all", () => {
  assert.deepEqual(shown("a\x1b[31mb\x1b[1;92mc\x1b[0md"),
    [["a", ["b", { fg: 1 }], ["c", { fg: 10, bold: true }], "d"]]);
  assert.deepEqual(restyled({}, "38;5;196;48;2;1;2;3"), { fg: "rgb(255 0 0)", bg: "rgb(1 2 3)" });
  assert.deepEqual(restyled({}, "38;5;3"), { fg: 3 });
  assert.deepEqual(restyled({}, "38;5;244"), { fg: "rgb(128 128 128)" });
  assert.deepEqual(restyled({ bold: true, fg: 1 }, "22;39"), {});
  assert.deepEqual(restyled({ bold: true }, ""), {});
});

test("what moves, clears, names or copies is dropped", () => {
  const copies = "\x1b]52;c;Y29weQ==\x1b\\";
  assert.deepEqual(shown(`a\x1b[2J\x1b[10;10H\x1b]0;title\x07${copies}\x1bP+q\x1b\\\x1b(Bb\x07\x00`), [["ab"]]);
  assert.deepEqual(shown("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\"), [["link"]]);
});

test("a line is written over from its beginning", () => {
  assert.deepEqual(shown("10%\r20%\r100%\nabc\rx"), [["100%"], ["x", "bc"]]);
  assert.deepEqual(shown("abd\x08c\r\n"), [["abc"], []]);
});

test("the pieces may be cut anywhere", () => {
  const whole = "one \x1b[38;5;196mred\x1b[0m\r\ntwo\x1b]0;t\x07 \x1b[1mbold\x1b[0m\n";
  const flat = (lines) => lines.map((spans) => JSON.stringify(spans.map((span) =>
      (Array.isArray(span) ? span : [span, {}]))
    .reduce((all, [text, style]) => {
      const last = all.at(-1);
      if (last && JSON.stringify(last[1]) === JSON.stringify(style)) last[0] += text;
      else all.push([text, style]);
      return all;
    }, [])));
  for (let cut = 0; cut <= whole.length; cut += 1) {
    assert.deepEqual(flat(shown(whole.slice(0, cut), whole.slice(cut))), flat(shown(whole)), String(cut));
  }
});

test("an escape that never ends keeps nothing back", () => {
  assert.equal(shown(`\x1b]0;${"x".repeat(1000)}`, "\nafter").at(-1).join(""), "after");
});
