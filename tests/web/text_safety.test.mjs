import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { printedText, safeLine, safeText } from "../../src/antiphon/web/static/js/text_safety.js";

const vectors = JSON.parse(readFileSync(new URL("../text/vectors.json", import.meta.url), "utf8"));

for (const { name, text, safe, line, printed } of vectors) {
  test(name, () => {
    assert.equal(safeText(text), safe);
    assert.equal(safeLine(text), line);
    assert.equal(printedText(text), printed);
  });
}

test("a long text takes time in proportion", () => {
  for (const unit of ["\x1b[", "\x9b0", "\x1b]0;", "\u200d", "\u{1f469}\u200d", "\u0301", "\r", "\x9d"])
    for (const make of [safeText, printedText]) assert.equal(typeof make(unit.repeat(50_000)), "string");
});
