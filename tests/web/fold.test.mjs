// What the page's fold has beyond the engine's: what changed, how turns ended, what is still written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SessionFold } from "../../src/antiphon/web/static/js/fold/session.js";

const text = (value) => ({ type: "text", text: value });
const user = (messageId) => ({ sessionUpdate: "user_message", messageId, content: [text(messageId)] });
const chunk = (messageId, value) =>
  ({ sessionUpdate: "agent_message_chunk", messageId, content: text(value) });
const state = (name, more) => ({ sessionUpdate: "state_update", state: name, ...more });

function folded(...updates) {
  const fold = new SessionFold();
  updates.forEach((update, at) => fold.apply(update, at));
  return fold;
}

test("what changed is told once, from the first item that did", () => {
  const fold = folded(user("u"), chunk("a", "x"), chunk("b", "y"));
  assert.deepEqual(fold.take().from, 0);
  fold.apply(chunk("b", "z"));
  const { kinds, from } = fold.take();
  assert.deepEqual([[...kinds], from], [["transcript"], 2]);
  fold.apply({ sessionUpdate: "usage_update", used: 1, size: 2 });
  assert.deepEqual([...fold.take().kinds], ["usage"]);
});

test("a message is complete when another begins, or the turn ends", () => {
  const fold = folded(state("running"), chunk("a", "x"));
  assert.equal(fold.items[0].complete, false);
  fold.apply(chunk("b", "y"));
  assert.deepEqual(fold.items.map((item) => item.complete), [true, false]);
  fold.apply(state("idle", { stopReason: "end_turn" }));
  assert.deepEqual(fold.items.map((item) => item.complete ?? item.kind), [true, true, "end"]);
});

test("a turn ends once, with how long it took; a state that is repeated ends nothing", () => {
  const fold = folded(state("running"), chunk("a", "x"), state("idle", { stopReason: "cancelled" }),
      state("idle"));
  const ends = fold.items.filter((item) => item.kind === "end");
  assert.deepEqual(ends.map(({ stopReason, since, at }) => [stopReason, since, at]), [["cancelled", 0, 2]]);
});

test("the state that closes a replay says how the last turn ended", () => {
  const fold = folded(user("u"), chunk("a", "x"), state("idle", { stopReason: "error",
      error: { message: "no" } }));
  assert.deepEqual(fold.items.map((item) => item.kind), ["message", "message", "end"]);
});

test("ends of earlier turns come from the timeline, each behind the last item of its turn", () => {
  const fold = folded(user("one"), chunk("a", "x"), user("two"), chunk("b", "y"), state("idle",
      { stopReason: "end_turn" }));
  fold.recall([
    { kind: "turn", id: "1", messageId: "one", start: 10, end: 20, status: "cancelled" },
    { kind: "tool", id: "t", start: 1, end: 2, status: "completed" },
    { kind: "turn", id: "2", messageId: "two", start: 30, end: 40, status: "end_turn" },
    { kind: "turn", id: "3", messageId: "gone", start: 50, end: 60, status: "error" },
  ]);
  assert.deepEqual(fold.items.map((item) => item.stopReason ?? item.id), ["one", "a", "cancelled", "two",
      "b", "end_turn"]);
  assert.deepEqual(fold.items.map((item) => item.index), [0, 1, 2, 3, 4, 5]);
  assert.deepEqual([fold.items[0].at, fold.items[5].since], [0, 30]);
  fold.apply(chunk("c", "z"));
  assert.equal(fold.items.at(-1).id, "c");
});

test("what a terminal writes is a change of the tool call that shows it", () => {
  const fold = folded({ sessionUpdate: "tool_call_update", toolCallId: "t", content: [{ type: "terminal",
      terminalId: "m" }] });
  const { version } = fold.items[0];
  fold.take();
  fold.apply({ sessionUpdate: "terminal_output_chunk", terminalId: "m", data: btoa("out") });
  assert.ok(fold.items[0].version > version);
  assert.equal(fold.take().from, 0);
  assert.equal(fold.terminals.get("m").output, "out");
});

test("what a question says of its call takes nothing back", () => {
  const fold = folded({ sessionUpdate: "tool_call_update", toolCallId: "t", title: "T", status: "in_progress",
    content: [{ type: "content", content: text("new") }] });
  fold.asked({ toolCallId: "t", title: "Run it?", status: "pending", content: [] });
  assert.deepEqual([fold.items[0].title, fold.items[0].status, fold.items[0].content.length], ["Run it?",
      "in_progress", 1]);
});

test("what is malformed or of nobody's making changes nothing else", () => {
  const fold = folded(user("u"));
  for (const odd of [null, 3, {}, { sessionUpdate: "__proto__" }, { sessionUpdate: "constructor" },
    { sessionUpdate: "agent_message_chunk", messageId: 3 }, { sessionUpdate: "_vendor",
        x: 1 }]) fold.apply(odd);
  assert.deepEqual([fold.items.length, fold.unknown.at(-1)], [1, { sessionUpdate: "_vendor", x: 1 }]);
});

test("a hundred thousand chunks are folded in no time", () => {
  const fold = new SessionFold();
  const began = performance.now();
  for (let at = 0; at < 100_000; at += 1) fold.apply(chunk("a", "word "));
  assert.equal(fold.items[0].text.length, 500_000);
  assert.ok(performance.now() - began < 3000);
});

test("an end that a timeline tells stands before the turn that is open", () => {
  const fold = new SessionFold();
  for (const id of ["a", "b"]) fold.apply(user(id));
  const turn = (messageId, start, end) =>
    ({ kind: "turn", id: messageId, messageId, start, end, status: "end_turn" });
  fold.recall([turn("a", 1, 2), turn("b", 3, null)]);
  assert.deepEqual(fold.items.map((item) => item.kind), ["message", "end", "message"]);
});

test("questions that ended without an answer are told with their turn", () => {
  const fold = new SessionFold();
  for (const id of ["a", "b"]) fold.apply(user(id));
  const question = (id, start, end, status) => ({ kind: "question", id, title: id, start, end, status });
  fold.recall([
    { kind: "turn", id: "1", messageId: "a", start: 1, end: 9, status: "error", cause: "hub_lost" },
    question("open?", 2, 9, "expired"), question("said", 3, 4, "answered"), question("later", 12, null, "open"),
    { kind: "turn", id: "2", messageId: "b", start: 11, end: null, status: "running" },
  ]);
  assert.deepEqual(fold.items.filter((item) => item.kind === "end").map(({ cause, unanswered }) =>
    [cause, unanswered]), [["hub_lost", [{ title: "open?" }]]]);
  fold.apply(state("running"));
  fold.expired.push({ title: "now?" });
  fold.apply(state("idle", { stopReason: "error" }));
  assert.deepEqual([fold.items.at(-1).unanswered, fold.expired], [[{ title: "now?" }], []]);
});
