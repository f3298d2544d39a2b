// What stands behind the page for a new session: folders, agents, groups, errors, and sessions that start.

import assert from "node:assert/strict";
import { test } from "node:test";

const STATIC = "../../src/antiphon/web/static/js";
const from = (path) => import(`${STATIC}/${path}`);
globalThis.localStorage = {
  kept: new Map(),
  getItem(key) { return this.kept.get(key) ?? null; },
  setItem(key, value) { this.kept.set(key, value); },
  removeItem(key) { this.kept.delete(key); },
};
const { completions, problemOf, recentOnes, splitPath } = await from("folders.js");
const { Agents, canStart, readAgents, statusOf } = await from("agents.js");
const { dayOf, grouped, WAITING } = await from("grouping.js");
const { agentWords, failureNotice, partsOf } = await from("failure.js");
const { matchingEntries } = await from("views/palette.js");
const { waitWords } = await from("views/starting.js");
const { Start, Starts } = await from("starting.js");
const { Emitter } = await from("emitter.js");
const { LinkLost, RpcError } = await from("rpc.js");
const { Notices } = await from("notices.js");

test("a typed path is a folder to list and the beginning of a name", () => {
  assert.deepEqual(splitPath("/home/ann/si"), { parent: "/home/ann", prefix: "si" });
  assert.deepEqual(splitPath("/us"), { parent: "/", prefix: "us" });
  assert.deepEqual(splitPath("~/"), { parent: "~", prefix: "" });
  assert.deepEqual(splitPath("~"), { parent: "~", prefix: "" });
  assert.deepEqual(splitPath("docs"), { parent: "", prefix: "docs" });
  assert.deepEqual(completions("/home/ann/si", ["site"]), ["/home/ann/site"]);
  assert.deepEqual(completions("/us", ["usr"]), ["/usr"]);
  assert.deepEqual(completions("~", ["site"]), ["~/site"]);
  assert.deepEqual(completions("do", ["docs"]), ["docs"]);
  assert.deepEqual(recentOnes(["/a/Site", "/b"], "site"), ["/a/Site"]);
});

test("a folder that cannot be used says why", () => {
  assert.equal(problemOf({ state: "ok", path: "/a" }), null);
  for (const state of ["missing", "not_a_folder", "unreadable"]) assert.match(problemOf({ state, path: "/a" }), /\/a/);
});

test("agents are read as text, and an unknown status is none", () => {
  const read = readAgents({ agents: [{ name: "a", status: "ready" }, { name: "b", title: "B\nx", status: "odd" }, { x: 1 }] });
  assert.deepEqual(read.map(({ title, status }) => [title, status]), [["a", "ready"], ["B x", null]]);
  assert.deepEqual(readAgents(null), []);
  assert.equal(readAgents({ agents: [{ name: "a", advice: "run `x`" }] })[0].advice, "Run `x`.");
  assert.equal(statusOf({ status: "needs_login" }), "Needs login");
  assert.equal(canStart({ status: "missing" }), false);
});

test("the agent that was used last is offered, unless it cannot start", async () => {
  const app = new Emitter();
  Object.assign(app, { agents: ["a", "b"], offers: {}, begins: true, role: "owner", link: { state: "online" } });
  const list = new Agents(app);
  await list.refresh();
  assert.equal(list.usual("b").name, "b");
  assert.equal(list.usual("gone").name, "a");
  assert.equal(list.mayAdd, false);
  app.offers = { listAgents: {}, addAgent: {} };
  app.call = async () => ({ agents: [{ name: "b", status: "missing" }, { name: "a", status: "installed" }] });
  await list.refresh();
  assert.equal(list.usual("b").name, "a");
  assert.equal(list.mayAdd, true);
});

test("sessions are grouped by day or by project, and those that wait come first", () => {
  const now = new Date(2031, 4, 14, 12).getTime();
  const at = (days) => new Date(now - days * 86_400_000).toISOString();
  const entries = [
    { sessionId: "w", state: "requires_action", updatedAt: at(9), cwd: "/a" },
    { sessionId: "1", updatedAt: at(0), cwd: "/a" },
    { sessionId: "2", updatedAt: at(1), cwd: "/b" },
    { sessionId: "3", updatedAt: at(4), cwd: "/a" },
    { sessionId: "4", updatedAt: at(40) },
  ];
  const shown = (how) => grouped(entries, how, now).map(({ name, entries }) => [name, entries.map((e) => e.sessionId).join("")]);
  const month = dayOf(at(40), now);
  assert.deepEqual(shown("day"), [[WAITING, "w"], ["Today", "1"], ["Yesterday", "2"], ["Last seven days", "3"], [month, "4"]]);
  assert.deepEqual(shown("project"), [[WAITING, "w"], ["/a", "13"], ["/b", "2"], ["No folder", "4"]]);
  assert.equal(dayOf(undefined, now), "Earlier");
});

test("an error has the agent's own words and what to do", () => {
  const error = new RpcError(-32603, "Internal error", { details: "no key\u202e", stderr: "line 1\nline 2", advice: "Log in." });
  assert.deepEqual(partsOf(error), {
    message: "no key⟨U+202E⟩", details: null, stderr: "line 1\nline 2", advice: "Log in.",
  });
  assert.equal(agentWords(error), "line 1\nline 2");
  const longer = new RpcError(-32603, "Internal error", { details: "no key\nat main" });
  assert.deepEqual([partsOf(longer).message, partsOf(longer).details], ["no key", "no key\nat main"]);
  assert.equal(partsOf(new RpcError(-32603, "Internal error")).message, "Internal error");
  assert.deepEqual(failureNotice("It failed", error), {
    title: "It failed", message: "No key⟨U+202E⟩. Log in.", more: "line 1\nline 2",
  });
  assert.deepEqual(failureNotice("It failed", new Error("plain")), { title: "It failed", message: "plain", more: null });
  assert.equal(agentWords(new Error("plain")), null);
  assert.equal(agentWords(new RpcError(1, "x", { stderr: ["a", "b"] })), "a\nb");
  assert.match(agentWords(new RpcError(1, "x", { stderr: `${"a".repeat(9000)}the end` })), /^….*the end$/);
});

test("the palette finds entries by all words, and those that begin with them first", () => {
  const entries = ["Show the files", "Files to show", "New session"].map((title) => ({ title }));
  assert.deepEqual(matchingEntries(entries, "files").map(({ title }) => title), ["Files to show", "Show the files"]);
  assert.equal(matchingEntries(entries, "").length, 3);
});

test("a start that takes long says so", () => {
  assert.equal(waitWords(2), "");
  assert.match(waitWords(65), /^1 min 5 s so far/);
});

test("notices stay, and errors are unread until somebody looks", () => {
  const app = new Emitter();
  const notices = new Notices(app);
  app.emit("told", { title: "Saved" });
  app.emit("error", { title: "Broken", message: "why", more: "trace" });
  assert.deepEqual(notices.all.map(({ title, unread }) => [title, unread]), [["Broken", true], ["Saved", false]]);
  notices.read();
  assert.equal(notices.unread, 0);
  for (let i = 0; i < 200; i += 1) app.emit("told", { title: `${i}` });
  assert.equal(notices.all.length, 100);
});

/** A session of the page, as far as its start is concerned. */
class FakeSession {
  sent = [];
  options = [];
  starting = null;
  constructor(entry) { Object.assign(this, { id: entry.sessionId, entry }); }
  changed() {}
  async setOption(id, value) { this.options.push([id, value]); }
  async prompt(blocks) { return this.starting ? this.starting.add(blocks) : this.sent.push(blocks[0].text); }
}

function starting(answers) {
  const app = new Emitter();
  const link = new Emitter();
  link.state = "online";
  const calls = [];
  Object.assign(app, {
    link, session: null,
    show(session) { app.session = session; },
    home() { app.session = null; },
    async adopt(session, sessionId) { session.id = sessionId; },
    async call(method, params) {
      calls.push([method, params]);
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  return { app, calls, starts: new Starts(app, (entry) => new FakeSession(entry)) };
}

const words = (text) => [{ type: "text", text }];
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("what is written while an agent starts goes to its session, in order", async () => {
  const { app, starts } = starting([{ sessionId: "s" }]);
  const session = starts.begin({ cwd: "/a", agent: "x", values: { mode: "auto" } }, words("one"));
  assert.equal(app.session, session);
  session.prompt(words("two"));
  assert.equal(session.starting.text, "one\n\ntwo");
  await settled();
  assert.deepEqual([session.id, session.sent, session.options], ["s", ["one", "two"], [["mode", "auto"]]]);
});

test("an agent that does not start keeps the prompts, and another agent gets them", async () => {
  const failure = new RpcError(-32603, "It did not start");
  const { calls, starts } = starting([failure, { sessionId: "s" }]);
  const session = starts.begin({ cwd: "/a", agent: "x" }, words("one"));
  await settled();
  assert.equal(session.starting.error, failure);
  starts.run(session, { agent: "y" });
  assert.equal(session.starting.error, null);
  await settled();
  assert.deepEqual(session.sent, ["one"]);
  const [first, second] = calls.map(([, { _meta }]) => _meta.antiphon);
  assert.deepEqual([first.agent, second.agent], ["x", "y"]);
  assert.notEqual(first.operationId, second.operationId);
});

test("a start whose link was lost asks again under the same operation id", async () => {
  const { app, calls, starts } = starting([new LinkLost(), { sessionId: "s" }]);
  const session = starts.begin({ cwd: "/a" }, words("one"));
  app.link.state = "lost";
  await settled();
  assert.deepEqual([calls.length, session.sent], [1, []]);
  app.link.state = "online";
  app.link.emit("state", "online");
  await settled();
  assert.deepEqual([session.sent, new Set(calls.map(([, { _meta }]) => _meta.antiphon.operationId)).size], [["one"], 1]);
});

test("a session that was given up is deleted if the hub makes it all the same", async () => {
  const { app, calls, starts } = starting([{ sessionId: "s" }, {}]);
  const session = starts.begin({ cwd: "/a" }, words("one"));
  starts.drop(session);
  await settled();
  assert.equal(app.session, null);
  assert.deepEqual(calls.map(([method]) => method), ["session/new", "session/delete"]);
  assert.equal(new Start({ cwd: "/" }).text, "");
});
