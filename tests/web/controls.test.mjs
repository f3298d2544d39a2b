// What the controls of the page say and do, as far as it needs no page.

import assert from "node:assert/strict";
import { test } from "node:test";

const STATIC = "../../src/antiphon/web/static/js";
const from = (path) => import(`${STATIC}/${path}`);
const { ago, bytes, cost, counted, initials, lasting, many, shortPath } = await from("words.js");
const { called, matching } = await from("views/slash.js");
const { placeFor, wordsOf } = await from("views/queue.js");
const { usualWay, waysOf } = await from("views/delivery.js");
const { endOf, isMine } = await from("views/questions.js");
const { KINDS, needsKind, optionKeys } = await from("views/permission.js");
const { addressOf } = await from("views/elicitation.js");
const { commandOf, nearChanges, patchLines } = await from("views/preview.js");
const { LIMIT, abilities, quoted, wayFor } = await from("views/attachments.js");
const { PromptHistory, promptsOf } = await from("views/prompt_history.js");
const { arranged, found } = await from("views/sessions.js");
const { arranged: arrangedOptions, groupsOf } = await from("views/options.js");
const { pageTitle } = await from("views/header.js");
const { linkWords } = await from("views/link.js");
const { progress } = await from("views/plan.js");
const { pathParts } = await from("views/files.js");
const { advice } = await from("failure.js");
const { foldersOf } = await from("folders.js");
const { since } = await from("views/people.js");
const { isLoopback, linkOf, mayInvite } = await from("views/invite.js");

const NOW = Date.parse("2031-05-04T12:00:00Z");
const before = (seconds) => NOW - seconds * 1000;

test("how long ago, in words", () => {
  const told = [0, 59, 60, 3599, 3600, 86_399, 86_400, 172_800].map((seconds) => ago(before(seconds), NOW));
  assert.deepEqual(told, ["now", "now", "1 min", "59 min", "1 h", "23 h", "yesterday", "2 d"]);
  assert.equal(ago("2031-05-04T11:00:00Z", NOW), "1 h");
  assert.equal(ago(NOW + 5000, NOW), "now");
  assert.equal(ago("never", NOW), "");
  assert.match(ago(before(86_400 * 400), NOW), /2030/);
  assert.equal(since(before(180), NOW), "here for 3 min");
  assert.equal(since(NOW, NOW), "came just now");
});

test("how long it took, in words", () => {
  const told = [0, 80, 999, 1000, 4200, 9949, 9950, 59_400, 59_600, 185_000, 3_600_000, 7_800_000].map(
    lasting,
  );
  assert.deepEqual(told, [
    "0 ms",
    "80 ms",
    "999 ms",
    "1.0 s",
    "4.2 s",
    "9.9 s",
    "10 s",
    "59 s",
    "1 min",
    "3 min 5 s",
    "1 h",
    "2 h 10 min",
  ]);
  assert.equal(lasting(-1), "");
});

test("numbers, sizes, costs and names", () => {
  assert.deepEqual([0, 999, 1000, 1250, 48_200, 999_499, 999_500, 1_500_000].map(many), [
    "0",
    "999",
    "1k",
    "1.3k",
    "48k",
    "999k",
    "1M",
    "1.5M",
  ]);
  assert.deepEqual([12, 2048, 3_500_000].map(bytes), ["12 B", "2 KB", "3.3 MB"]);
  assert.match(cost({ amount: 0.0421, currency: "USD" }), /0[.,]0421/);
  assert.match(cost({ amount: 2, currency: "not a currency" }), /2\.00 not a cu?/);
  assert.deepEqual([counted(1, "line"), counted(0, "line")], ["1 line", "0 lines"]);
  assert.deepEqual(["Ann Example", "browser", "", "ann.b@example", "李 小龙"].map(initials), [
    "AE",
    "BR",
    "?",
    "AE",
    "李小",
  ]);
  assert.equal(shortPath("/home/me/site/docs"), "…/site/docs");
  assert.equal(shortPath("/srv"), "/srv");
  assert.ok(!shortPath("/a/b\u202e/c").includes("\u202e"));
});

test("commands are offered by their beginning first, and only while the name is written", () => {
  const commands = ["edit", "ask", "credit", "end"].map((name) => ({ name }));
  const names = (text) => matching(commands, text).map((command) => command.name);
  assert.deepEqual(names("/"), ["edit", "ask", "credit", "end"]);
  assert.deepEqual(names("/ed"), ["edit", "credit"]);
  assert.deepEqual(names("/E"), ["edit", "end", "credit"]);
  assert.deepEqual([names("/edit it"), names("edit"), names("a /edit")], [[], [], []]);
  assert.equal(called(commands, "/ask me").name, "ask");
  assert.equal(called(commands, "/as"), null);
});

test("a queued prompt moves by one place", () => {
  const entries = ["a", "b", "c"].map((messageId) => ({ messageId }));
  assert.equal(placeFor(entries, "b", -1), "a");
  assert.equal(placeFor(entries, "b", 1), null);
  assert.equal(placeFor(entries, "a", 1), "c");
  assert.equal(placeFor(entries, "a", -1), undefined);
  assert.equal(placeFor(entries, "gone", 1), undefined);
  const image = { type: "image" };
  assert.deepEqual(wordsOf([{ type: "text", text: "a" }, image, { type: "text", text: "b" }]), {
    text: "a\nb",
    others: [image],
  });
});

test("only what the hub announces is offered while it works", () => {
  const offers = (delivery) => waysOf({ _meta: { antiphon: { delivery } } });
  assert.deepEqual(offers(["queue", "interrupt", "_odd"]), ["queue", "interrupt"]);
  assert.deepEqual(waysOf({}), ["queue"]);
});

test("a prompt does what the hub announces as usual, until another way is chosen", () => {
  const usual = (busy, delivery) => usualWay({ _meta: { antiphon: { busy, delivery } } });
  assert.equal(usual("agent", ["queue", "steer", "agent"]), "agent");
  assert.equal(usual("agent", ["queue"]), "queue");
  assert.equal(usual("_odd", ["queue", "_odd"]), "queue");
  assert.equal(usualWay({}), "queue");
});

test("a question says how it ended, and by whom", () => {
  const by = { clientId: "c1", name: "Ann\u202e" };
  const answered = { state: "answered", by, outcome: "selected", outcomeName: "Allow once" };
  assert.equal(endOf(answered, "c2"), "Answered by Ann⟨U+202E⟩: Allow once");
  assert.equal(
    endOf({ state: "answered", by, outcome: "decline" }, "c2"),
    "Answered by Ann⟨U+202E⟩: declined",
  );
  assert.equal(endOf({ state: "answered", by: null, outcome: "accept" }, "c2"), "Answered");
  assert.equal(endOf({ state: "expired" }, "c2"), "Not answered in time. Nothing was allowed.");
  assert.equal(endOf({ state: "expired", cause: "hub_lost" }, "c2"),
    "Not answered: the hub ended unexpectedly. Nothing was allowed.");
  assert.match(endOf({ state: "cancelled" }, "c2"), /withdrawn/);
  assert.deepEqual(
    [isMine(answered, "c1"), isMine(answered, "c2"), isMine({ state: "open" }, "c1")],
    [true, false, false],
  );
});

test("what holds for longer than once says so", () => {
  assert.deepEqual(
    ["Allow", "Always allow", "Allow for this session"].map((name) => needsKind(name, "allow_always")),
    [true, false, false],
  );
  assert.equal(needsKind("Allow", "allow_once"), false);
  assert.deepEqual(
    Object.values(KINDS).map(({ verb }) => verb),
    ["allow", "allow", "reject", "reject"],
  );
});

test("each option has the key of its kind, in whatever order the agent lists them", () => {
  assert.deepEqual(
    optionKeys(["reject_always", "allow_always", "allow_once", "allow_always", "reject_once"]),
    ["N", "a", "y", "", "n"],
  );
  assert.deepEqual(optionKeys(["allow_once", "allow_once", "reject_always", "odd"]), ["y", "", "n", ""]);
});

test("only a plain web address is offered to be opened, by its host", () => {
  assert.equal(addressOf("https://pay.example.org:8443/a?b").host, "pay.example.org:8443");
  assert.equal(addressOf("http://example.org").secure, false);
  assert.equal(addressOf("https://аррӏе.example").ascii, false);
  for (const url of [
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "https://a:b@example.org",
    "x",
    null,
  ]) {
    assert.equal(addressOf(url), null, url);
  }
});

test("a permission shows the command or the lines that change", () => {
  assert.equal(commandOf({ command: { command: "ls" } }, null), "ls");
  assert.equal(commandOf({}, { rawInput: { command: ["ls", "-l"] } }), "ls -l");
  assert.equal(commandOf({}, { rawInput: "ls" }), null);
  const patch =
    "diff --git a/x b/x\nnew file mode 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- old\n+++ new\n" +
    "@@ -9 +9,0 @@\n-gone\n\\ No newline at end of file\n";
  assert.deepEqual(patchLines(patch), ["@", " same", "--- old", "+++ new", "@", "-gone"]);
});

test("of a change that shows the whole file, what is near it is seen", () => {
  const lines = ["@", " 1", " 2", " 3", "-4", "+5", " 6", " 7", " 8", " 9", "-10"];
  assert.deepEqual(nearChanges(lines, 1), ["@", " 3", "-4", "+5", " 6", "@", " 9", "-10"]);
  assert.deepEqual(nearChanges(["@", "+1", "@", " 2"], 0), ["@", "+1"]);
  assert.deepEqual(nearChanges(["@", " 1", " ", "-2", " ", "", " 3"], 2), ["@", " 1", " ", "-2"]);
  assert.deepEqual(nearChanges([]), []);
});

test("files go as the agent takes them, and not beyond the limit", () => {
  const all = abilities({ session: { prompt: { image: {}, audio: {}, embeddedContext: {} } } });
  const none = abilities({});
  const way = (type, name, able, size = 10) => wayFor({ type, name, size }, able);
  assert.deepEqual(way("image/png", "a.png", all), { kind: "image" });
  assert.deepEqual(way("image/svg+xml", "a.svg", all), { kind: "text" });
  assert.deepEqual(way("audio/ogg", "a.ogg", all), { kind: "audio" });
  assert.deepEqual(way("", "notes.md", all), { kind: "text" });
  assert.deepEqual(way("application/zip", "a.zip", all), { kind: "blob" });
  assert.deepEqual(way("text/plain", "a", none), { kind: "quoted" });
  assert.match(way("image/png", "a.png", none).refused, /not accept images/);
  assert.match(way("text/plain", "a", all, LIMIT + 1).refused, /8\.0 MB/);
  assert.match(wayFor({ type: "text/plain", name: "a", size: 10 }, all, LIMIT).refused, /together/);
  assert.ok(quoted("a.md", "````\nx\n````").includes("\n`````\n"));
});

test("earlier prompts are walked, and what was written is not lost", () => {
  const item = (text, role = "user") => ({ kind: "message", role, text });
  const texts = promptsOf([item("one"), item("said", "agent"), item("two"), item("one "), { kind: "tool" }]);
  assert.deepEqual(texts, ["two", "one"]);
  const history = new PromptHistory();
  const walked = [history.back(texts, "draft"), history.back(texts, ""), history.back(texts, "")];
  assert.deepEqual(walked, ["one", "two", null]);
  assert.deepEqual(
    [history.forward(texts), history.forward(texts), history.forward(texts)],
    ["one", "draft", null],
  );
});

test("sessions: what waits is first, then the latest; found by every word", () => {
  const entries = [
    { sessionId: "a", title: "Song", cwd: "/srv/site", updatedAt: "2031-01-01T00:00:00Z", state: null },
    { sessionId: "b", title: "Build", cwd: "/srv/app", updatedAt: "2031-01-03T00:00:00Z", state: "idle" },
    {
      sessionId: "c",
      title: null,
      cwd: "/srv/site",
      updatedAt: "2031-01-02T00:00:00Z",
      state: "requires_action",
    },
  ];
  assert.deepEqual(
    arranged(entries).map((entry) => entry.sessionId),
    ["c", "b", "a"],
  );
  assert.deepEqual(
    found(entries, "SITE song").map((entry) => entry.sessionId),
    ["a"],
  );
  assert.equal(found(entries, " ").length, 3);
  assert.deepEqual(foldersOf(entries), ["/srv/app", "/srv/site"]);
});

test("options: the mode first, groups kept, what is unknown left out", () => {
  const options = [
    { type: "boolean", name: "x" },
    { type: "_odd" },
    { type: "select", category: "model" },
    { type: "select", category: "mode" },
  ];
  assert.deepEqual(
    arrangedOptions(options).map((option) => option.category ?? option.name),
    ["mode", "model", "x"],
  );
  const a = { value: "a", name: "A" };
  assert.deepEqual(groupsOf({ options: [a, a] }), [{ name: null, values: [a, a] }]);
  assert.deepEqual(groupsOf({ options: [{ group: "g", name: "G", options: [a] }] }), [
    { name: "G", values: [a] },
  ]);
});

test("the tab of the browser says that a question waits", () => {
  const session = {
    title: "Song",
    state: "requires_action",
    questions: [{ state: "open" }, { state: "answered" }],
  };
  assert.equal(pageTitle(session), "(1) Question · Song · Antiphon");
  assert.equal(pageTitle({ ...session, questions: [], state: "running" }), "Working · Song · Antiphon");
  assert.equal(pageTitle({ title: null, state: "idle", questions: [] }), "Untitled · Antiphon");
  assert.equal(pageTitle(null), "Antiphon");
  assert.equal(pageTitle(session, 2), "(3) Question · Song · Antiphon");
  assert.equal(pageTitle({ ...session, questions: [], state: "idle" }, 1), "(1) Song · Antiphon");
  assert.equal(pageTitle(null, 1), "(1) Antiphon");
});

test("a lost link says when it is tried again", () => {
  assert.equal(linkWords({ state: "online" }, NOW), null);
  assert.equal(linkWords({ state: "lost", retryAt: NOW + 2100 }, NOW), "Reconnecting in 3 s");
  assert.equal(linkWords({ state: "lost", retryAt: null }, NOW), "Reconnecting…");
});

test("plans, files and errors", () => {
  const entries = ["completed", "pending", "cancelled"].map((status) => ({ status }));
  assert.deepEqual(progress(entries), { done: 1, all: 2 });
  assert.deepEqual(pathParts("/srv/site/docs/a.md", "/srv/site/"), { name: "a.md", folder: "docs" });
  assert.deepEqual(pathParts("/srv/a.md", null), { name: "a.md", folder: "/srv" });
  assert.deepEqual(pathParts("/srv/sites/a.md", "/srv/site"), { name: "a.md", folder: "/srv/sites" });
  assert.match(advice({ code: -32003, data: { reason: "forbidden" } }), /observer/);
  assert.equal(advice({ code: -32603 }), null);
});

test("who may invite, and where a link leads", () => {
  const owner = { role: "owner", only: null, offers: { link: true } };
  const others = [{ role: "controller" }, { role: null }, { only: ["s1"] }, { offers: {} }];
  assert.equal(mayInvite(owner), true);
  for (const other of others) assert.equal(mayInvite({ ...owner, ...other }), false);
  const here = ["localhost", "hub.localhost", "127.0.0.1", "127.1.2.3", "[::1]"];
  const elsewhere = ["hub.example", "10.0.0.1", "localhost.example", "127.0.0.1.example", "[fd00::1]", ""];
  assert.deepEqual(here.filter(isLoopback), here);
  assert.deepEqual(elsewhere.filter(isLoopback), []);
  const link = new URL(linkOf("https://hub.example", "a_-b", "s&1#/ü"));
  const behind = new URLSearchParams(link.hash.slice(1));
  assert.deepEqual([link.origin, link.pathname, link.search], ["https://hub.example", "/", ""]);
  assert.deepEqual([behind.get("login"), behind.get("session")], ["a_-b", "s&1#/ü"]);
});

test("a turn that was cut says by what, and which questions ended with it", async () => {
  const { endWords, unansweredWords } = await from("views/transcript/end.js");
  const cut = (cause) => ({ stopReason: "error", error: { data: { reason: "interrupted", cause } } });
  assert.deepEqual([endWords(cut("hub_stopped")), endWords(cut("constructor")), endWords({ stopReason: "error",
    cause: "agent_lost" }), endWords({ stopReason: "error" }), endWords({ stopReason: "end_turn" })], [
    "The turn was interrupted: the hub was stopped", "The turn was interrupted",
    "The turn was interrupted: the agent ended", "The turn failed", null]);
  assert.deepEqual([unansweredWords([]), unansweredWords([{ title: "Run it?" }, {}])], [null,
    "Nobody answered the question “Run it?” and 1 more question, so nothing was allowed."]);
});

test("an @ before the cursor is a mention, and an address of mail is none", async () => {
  const { fileLink, mentionAt } = await from("views/mention.js");
  assert.deepEqual([mentionAt("see @src/a", 10), mentionAt("@", 1), mentionAt("(@x", 3), mentionAt("a@b", 3),
    mentionAt("@a b", 4), mentionAt("see @src/a", 6)], [{ from: 4, query: "src/a" }, { from: 0, query: "" },
    { from: 1, query: "x" }, null, null, { from: 4, query: "s" }]);
  assert.deepEqual(fileLink({ path: "src/a.py", uri: "file:///w/src/a.py" }).block,
    { type: "resource_link", name: "a.py", uri: "file:///w/src/a.py" });
});

test("a prompt is sent again after the last message before it", async () => {
  const { messageBefore, promptBefore } = await from("views/transcript/resend.js");
  const said = (role, id, count = 1) => ({ kind: "message", role, id, blocks: Array(count).fill({}) });
  const items = [said("user", "1"), said("thought", "2"), { kind: "tool" }, said("user", "3"), { kind: "end" }];
  assert.deepEqual([messageBefore(items, 3)?.id, messageBefore(items, 0), promptBefore(items, 4).id,
    promptBefore([said("user", "gone", 0)], 1)], ["1", null, "3", null]);
});

test("a path leads to the changes or to a prompt that has the file, and nowhere else", async () => {
  const { placeOf } = await from("views/transcript/places.js");
  const uri = "file:///w/a%20b.txt";
  const items = [{ kind: "message", role: "user", id: "m", blocks: [{ type: "resource", resource: { uri } }] }];
  assert.deepEqual([placeOf("/w/c", [{ path: "/w/c" }], items), placeOf("/w/a b.txt", [], items),
    placeOf("/etc/passwd", [{ path: "/w/c" }], items), placeOf(null, [], [])],
    [{ changes: "/w/c" }, { message: "m" }, null, null]);
});

test("long prompts are folded", async () => {
  const { isLong } = await from("views/transcript/message.js");
  assert.deepEqual([isLong("x\n".repeat(10)), isLong("x\n".repeat(30)), isLong("x".repeat(3000))],
    [false, true, true]);
});
