// The search over all sessions: which answer counts, and how a match is cut into pieces.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bySession, LatestSearch, pieces } from "../../src/antiphon/web/static/js/views/search.js";

test("ranges count characters, not the halves of one", () => {
  assert.deepEqual(pieces("🎉 red 🎉 build", [[2, 5], [8, 13]]), [
    ["🎉 ", false],
    ["red", true],
    [" 🎉 ", false],
    ["build", true],
  ]);
  assert.deepEqual(pieces("plain", []), [["plain", false]]);
  assert.deepEqual(pieces("odd", [[2, 99], [1, 2], [5, 1]]), [["od", false], ["d", true]]);
});

test("the marks of Markdown are left out of a line, and what only looks like them stays", () => {
  const text = (snippet, ranges = []) => pieces(snippet, ranges).map(([piece]) => piece).join("");
  const start = '**Fixed.** `order("'.length;
  assert.deepEqual(pieces('**Fixed.** `order("Tenor")` 🎉', [[start, start + 5]]), [
    ['Fixed. order("', false],
    ["Tenor", true],
    ['") 🎉', false],
  ]);
  assert.deepEqual([
    text("word: | Voice | Word | |---|:--| | alto | let | | bass | the |"),
    text("## Two *small* things, *really*"),
    text("Two: * `score.py` is right. * `test.py` is new."),
    text("f(**kwargs) is 2 ** 3 ** 4, or a || b, and one ` alone"),
  ], [
    "word: | Voice | Word | alto | let | bass | the |",
    "Two small things, really",
    "Two: score.py is right. test.py is new.",
    "f(**kwargs) is 2 ** 3 ** 4, or a || b, and one ` alone",
  ]);
});

test("matches are listed by session, in the order of their first ones", () => {
  const match = (sessionId, messageId) => ({ sessionId, title: `of ${sessionId}`, messageId });
  assert.deepEqual(bySession([match("b", 1), match("a", 2), match("b", 3)]), [
    { title: "of b", matches: [match("b", 1), match("b", 3)] },
    { title: "of a", matches: [match("a", 2)] },
  ]);
});

test("an answer that comes after a newer query is dropped", async () => {
  const asked = [];
  const shown = [];
  const latest = new LatestSearch(
    (query) => new Promise((resolve) => asked.push([query, resolve])),
    (query, answer) => shown.push([query, answer]),
  );
  const pause = () => new Promise((done) => setTimeout(done, 5));
  latest.look("re", 0);
  await pause();
  latest.look("red", 0);
  await pause();
  assert.deepEqual(asked.map(([query]) => query), ["re", "red"]);
  asked[1][1]("of red");
  asked[0][1]("of re");
  await pause();
  assert.deepEqual(shown, [["red", "of red"]]);
  latest.look("", 0);
  assert.deepEqual(shown.at(-1), ["", null]);
  latest.look("late", 0);
  latest.stop();
  await pause();
  assert.equal(asked.length, 2);
});
