// Many rows and long texts: what is where, and which parts of it are shown.

import assert from "node:assert/strict";
import { test } from "node:test";
import { countIn, search } from "../../src/antiphon/web/static/js/views/transcript/search.js";
import { Heights } from "../../src/antiphon/web/static/js/views/transcript/heights.js";
import { cutNear, partsOf } from "../../src/antiphon/web/static/js/text_parts.js";

test("heights say where rows are, as adding them up would", () => {
  const heights = new Heights();
  const plain = [];
  for (let round = 0; round < 3000; round += 1) {
    const choice = Math.random();
    if (choice < 0.6 || plain.length < 2) {
      plain.push(Math.floor(Math.random() * 100));
      heights.push(plain.at(-1));
    } else if (choice < 0.97) {
      const at = Math.floor(Math.random() * plain.length);
      plain[at] = Math.floor(Math.random() * 100) + 1;
      heights.set(at, plain[at]);
    } else {
      plain.length -= 1;
      heights.truncate(plain.length);
    }
  }
  let top = 0;
  plain.forEach((height, at) => {
    assert.equal(heights.offset(at), top);
    if (height) assert.equal(heights.find(top + height / 2), at);
    top += height;
  });
  assert.equal(heights.total, top);
  assert.equal(heights.find(top + 1), plain.length - 1);
});

test("a hundred thousand rows take no time", () => {
  const heights = new Heights();
  const began = performance.now();
  for (let at = 0; at < 100_000; at += 1) heights.push(40);
  for (let at = 0; at < 100_000; at += 1) heights.set(at, 41);
  for (let at = 0; at < 100_000; at += 1) heights.find(at * 41);
  assert.equal(heights.total, 4_100_000);
  assert.ok(performance.now() - began < 2000);
});

test("of a long text the beginning and the end are shown, and a longer beginning when asked for", () => {
  const long = "word ".repeat(100_000);
  const { head, tail } = partsOf(long);
  assert.ok(head < 25_000 && long.length - tail < 30_000 && tail > head);
  assert.ok(partsOf(long, 300_000).head > 290_000);
  assert.deepEqual(partsOf("short"), { head: 5, tail: 5 });
});

test("where the end begins moves in steps, so that it is not drawn anew with every word", () => {
  const tails = new Set();
  for (let length = 100_000; length < 110_000; length += 50) tails.add(partsOf("w ".repeat(length / 2)).tail);
  assert.ok(tails.size <= 3);
});

test("a text is cut behind lines and words, and never within a character", () => {
  assert.equal(cutNear("one two\nthree four", 12), 8);
  const faces = "\u{1f600}".repeat(3000);
  assert.equal(cutNear(faces, 2501) % 2, 0);
});

test("finding counts whatever the case, and goes from the end to the beginning", async () => {
  assert.equal(countIn("Aa aA", "aa"), 2);
  const items = ["none", "one match", "match and match"];
  const results = await new Promise((resolve) => {
    search(items, "MATCH", (item) => [item], (found, done) => done && resolve(found));
  });
  assert.deepEqual(results, [{ index: 2, count: 2 }, { index: 1, count: 1 }]);
});
