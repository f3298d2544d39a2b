// What a person should hear of while the page is hidden.

import assert from "node:assert/strict";
import { test } from "node:test";

const { listNews, questionNews, waitingElsewhere, withCount } = await import(
  new URL("../../src/antiphon/web/static/js/attention.js", import.meta.url)
);

const entry = (sessionId, state, title = null) => ({ sessionId, state, title });
const fresh = (...given) => listNews(...given).news;
const brief = (news) => news.map(({ kind, session, title, text }) => [kind, session, title, text]);

test("the first list is no news, and then each change is told once", () => {
  const known = new Map();
  assert.deepEqual(fresh(known, [entry("a", "running"), entry("b", "requires_action")], null), []);
  const now = [entry("a", "idle", "Song"), entry("b", "requires_action"), entry("c", "running")];
  assert.deepEqual(brief(fresh(known, now, null)), [["turn", "a", "Song", "Finished"]]);
  assert.deepEqual(listNews(known, now, null), { news: [], ended: [] });
  const asks = [entry("a", "requires_action"), entry("b", "idle"), entry("c", "requires_action")];
  const told = listNews(known, asks, "c");
  assert.deepEqual(told.ended, ["b/waits"]);
  assert.deepEqual(brief(told.news), [
    ["question", "a", "Untitled", "The agent asks a question"],
    ["turn", "b", "Untitled", "Finished"],
  ]); // of "c", which is shown, the question itself is told
});

test("a session that is put away or deleted has ended nothing", () => {
  const known = new Map([["a", "running"], ["b", "running"]]);
  assert.deepEqual(fresh(known, [entry("a", null)], null), []);
  assert.deepEqual([...known.keys()], ["a"]);
});

test("each question is told when it opens, and its notification closes when it ends", () => {
  const known = new Set();
  const question = (id, state, more) => ({ id, state, title: "Run it", mine: true, ...more });
  const session = { id: "s", title: "Song\n\u202e", questions: [question("q", "open", { mine: false })] };
  assert.deepEqual(questionNews(known, session), { news: [], ended: [] }); // its words are not known yet
  session.questions = [question("q", "open")];
  const first = questionNews(known, session);
  assert.deepEqual([brief(first.news), first.ended], [[["question", "s", "Song ⟨U+202E⟩", "Run it"]], []]);
  assert.equal(first.news[0].tag, "s/q"); // as the tag of a pushed one, which then replaces it
  assert.deepEqual(questionNews(known, session), { news: [], ended: [] });
  session.questions = [question("q", "answered"), question("r", "open", { title: null, message: "Name?" })];
  const second = questionNews(known, session);
  assert.deepEqual([brief(second.news)[0][3], second.ended], ["Name?", ["s/q"]]);
});

test("the number before the title counts other sessions, too", () => {
  const sessions = [entry("a", "requires_action"), entry("b", "requires_action"), entry("c", "idle")];
  assert.equal(waitingElsewhere(sessions, "a"), 1);
  assert.equal(waitingElsewhere(sessions, null), 2);
  assert.equal(withCount(2, "Antiphon"), "(2) Antiphon");
  assert.equal(withCount(0, "Antiphon"), "Antiphon");
});
