// What goes over the link: requests both ways, and what is asked again after a loss.

import assert from "node:assert/strict";
import { test } from "node:test";
import { route } from "../../src/antiphon/web/static/js/browser.js";
import { Emitter } from "../../src/antiphon/web/static/js/emitter.js";
import { keptUp, readEntry } from "../../src/antiphon/web/static/js/listing.js";
import { Outbox } from "../../src/antiphon/web/static/js/outbox.js";
import { LinkLost, Peer, RpcError } from "../../src/antiphon/web/static/js/rpc.js";

const turn = () => new Promise((resolve) => setTimeout(resolve));

function peer(handlers) {
  const sent = [];
  return { sent, peer: new Peer((frame) => sent.push(JSON.parse(frame)), handlers) };
}

test("requests are answered by id, in any order", async () => {
  const { peer: one, sent } = peer();
  const answers = [one.request("a", {}), one.request("b", {})];
  one.receive(JSON.stringify({ jsonrpc: "2.0", id: sent[1].id, result: { b: 1 } }));
  one.receive(JSON.stringify({ jsonrpc: "2.0", id: sent[0].id, error: { code: -1, message: "no",
      data: { reason: "x" } } }));
  assert.deepEqual(await answers[1], { b: 1 });
  await assert.rejects(answers[0], (error) =>
      error instanceof RpcError && error.code === -1 && error.data.reason === "x");
});

test("what the other side asks is answered, refused where nobody knows it, and taken back", async () => {
  let signal;
  const waits = (_, given) => {
    signal = given.signal;
    return new Promise(() => {});
  };
  const fails = () => Promise.reject(new Error("private"));
  const { peer: one, sent } = peer({ requests: { add: ({ x, y }) => x + y, waits, fails } });
  one.receive(JSON.stringify({ id: 1, method: "add", params: { x: 1, y: 2 } }));
  one.receive(JSON.stringify({ id: 2, method: "__proto__" }));
  one.receive(JSON.stringify({ id: 3, method: "waits" }));
  one.receive(JSON.stringify({ id: 4, method: "fails" }));
  await turn();
  one.receive(JSON.stringify({ method: "$/cancel_request", params: { requestId: 3 } }));
  await turn();
  assert.deepEqual(sent.map(({ id, result, error }) => [id, result ?? error.code]),
    [[2, -32601], [1, 3], [4, -32603], [3, -32800]]);
  assert.ok(!JSON.stringify(sent).includes("private"));
  assert.equal(signal.aborted, true);
});

test("what is not JSON, or no frame, harms nothing", () => {
  const { peer: one, sent } = peer();
  for (const text of ["{", "null", "3", "[]", "{}", '{"id":9,"result":1}',
      '{"method":"nobody"}']) one.receive(text);
  assert.deepEqual(sent.map(({ error }) => error.code), [-32700]);
});

test("a lost link fails what was asked, and what is asked then", async () => {
  const { peer: one } = peer();
  const asked = one.request("a", {});
  one.close();
  await assert.rejects(asked, LinkLost);
  await assert.rejects(one.request("b", {}), LinkLost);
});

test("the outbox asks again under the same id until there is an answer, and only then forgets", async () => {
  const tries = [];
  let online = false;
  const outbox = new Outbox(async (method, params) => {
    tries.push([method, params.operationId]);
    if (!online) throw new LinkLost();
    if (params.operationId === "bad") throw new RpcError(-1, "no");
    return { messageId: "m" };
  });
  const good = outbox.add({ id: "good", sessionId: "s", method: "inject", params: { operationId: "good" } });
  const bad = outbox.add({ id: "bad", sessionId: "t", method: "inject", params: { operationId: "bad" } });
  await turn();
  assert.deepEqual(outbox.of("s").map(({ id }) => id), ["good"]);
  online = true;
  outbox.flush();
  outbox.flush();
  assert.deepEqual(await good, { messageId: "m" });
  await assert.rejects(bad, RpcError);
  assert.deepEqual(tries.map(([, id]) => id), ["good", "bad", "good", "bad"]);
  assert.deepEqual(outbox.waiting, []);
});

test("one listener that fails keeps nothing from the others", () => {
  const heard = [];
  globalThis.reportError = (error) => heard.push(error.message);
  const emitter = new Emitter();
  emitter.on("x", () => {
    throw new Error("broken");
  });
  const stop = emitter.on("x", (detail) => heard.push(detail));
  emitter.emit("x", 1);
  stop();
  emitter.emit("x", 2);
  assert.deepEqual(heard, ["broken", 1, "broken"]);
});

test("the address names a session", () => {
  assert.equal(route("#/s/sess_1"), "sess_1");
  assert.equal(route(`#/s/${encodeURIComponent("a/b c")}`), "a/b c");
  for (const other of ["", "#", "#login=x", "#/s/", "#/s/%"]) assert.equal(route(other), null);
});

test("the list of sessions is kept up by what changed in it", () => {
  const entry = (sessionId, title, state) => ({ sessionId, title, _meta: { antiphon: { state,
      agent: "a" } } });
  const before = [entry("one", "One", "idle"), entry("two", "Two")].map(readEntry);
  const after = keptUp(before, [entry("two", "Deux", "running"), entry("three", "Three", "idle")], ["one"]);
  assert.deepEqual(after.map(({ sessionId, title, state }) => [sessionId, title, state]),
    [["three", "Three", "idle"], ["two", "Deux", "running"]]);
});

test("a session that cannot be opened says so in its state, whatever the hub calls it", () => {
  const read = (fault) =>
    readEntry({ sessionId: "s", cwd: "/", _meta: { antiphon: { state: "idle", fault } } }).state;
  assert.equal(read({ kind: "damaged", found: "event 4 cannot be read" }), "damaged");
  assert.equal(read({ kind: "newer", found: "format 9" }), "newer");
  assert.equal(read({ kind: 7 }), "damaged");
  assert.equal(read(undefined), "idle");
  assert.equal(read("odd"), "idle");
});
