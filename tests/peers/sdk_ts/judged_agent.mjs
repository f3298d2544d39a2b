// An agent of v1 and v2 written with the official TypeScript SDK, for the judge: what it gets wrong, the SDK gets wrong.
//
// It offers only what it does. The prompt says what that is: `count` (until it is cancelled), `tool`, `slow tool`,
// `permission`, `fail`; anything else is repeated in two chunks. load.mjs says how it finds the SDK.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { loadSdk } from "./load.mjs";
import { serve } from "./serve.mjs";

const v1 = await loadSdk("");
const v2 = await loadSdk("/experimental/v2");

const A_MOMENT = 10; // milliseconds between two numbers
const INFO = { name: "sdk-ts-judged", version: "1.0.0" };
const OPTIONS = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];

const textOf = (prompt) => prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
const chosen = ({ outcome, optionId }) => (outcome === "selected" ? optionId : undefined);
const until = (signal) => new Promise((resolve) => (signal.aborted ? resolve() : (signal.onabort = resolve)));

/** What the prompts do in both versions. `turn` has `say`, `call`, `ask` and `signal`, which a cancel aborts. */
async function work(turn, text) {
  if (text === "fail") throw new Error("the agent failed");
  if (text === "count") {
    for (let number = 1; !turn.signal.aborted; number++) {
      await turn.say(`${number} `);
      await sleep(A_MOMENT, undefined, { signal: turn.signal }).catch(() => {});
    }
  } else if (text === "tool" || text === "slow tool" || text === "permission") {
    const call = { toolCallId: `call_${randomUUID()}`, title: "Touch a file", kind: "edit", status: "pending" };
    await turn.call(call);
    const allowed = text !== "permission" || (await turn.ask(call)) === "yes";
    if (allowed) await turn.call({ toolCallId: call.toolCallId, status: "in_progress" });
    if (text === "slow tool") await until(turn.signal);
    const status = turn.signal.aborted ? turn.cancelled : allowed ? "completed" : "failed";
    await turn.call({ toolCallId: call.toolCallId, status });
  } else {
    const characters = Array.from(text);
    const half = Math.ceil(characters.length / 2);
    for (const part of [characters.slice(0, half), characters.slice(half)]) await turn.say(part.join(""));
  }
}

// --- v1 ---------------------------------------------------------------------------------------------------

const turns = new Map(); // session id -> the AbortController of its last turn

async function promptV1({ params: { sessionId, prompt }, client }) {
  if (!turns.has(sessionId)) throw new v1.RequestError(-32002, "Resource not found", { sessionId });
  const stop = new AbortController();
  turns.set(sessionId, stop);
  const update = (value) => client.notify(v1.methods.client.session.update, { sessionId, update: value });
  let begun = false;
  const turn = {
    signal: stop.signal,
    cancelled: "failed", // v1 has no other status for it
    say: (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }),
    call(fields) {
      const sessionUpdate = begun ? "tool_call_update" : "tool_call";
      begun = true;
      return update({ sessionUpdate, ...fields });
    },
    async ask(toolCall) {
      const request = { sessionId, toolCall, options: OPTIONS };
      const { outcome } = await client.request(v1.methods.client.session.requestPermission, request);
      return chosen(outcome);
    },
  };
  await work(turn, textOf(prompt));
  return { stopReason: stop.signal.aborted ? "cancelled" : "end_turn" };
}

const agentV1 = v1
  .agent({ name: INFO.name })
  .onRequest(v1.methods.agent.initialize, () => ({
    protocolVersion: v1.PROTOCOL_VERSION,
    agentInfo: INFO,
    agentCapabilities: {},
  }))
  .onRequest(v1.methods.agent.session.new, () => {
    const sessionId = `sess_${randomUUID()}`;
    turns.set(sessionId, undefined);
    return { sessionId };
  })
  .onRequest(v1.methods.agent.session.prompt, promptV1)
  .onNotification(v1.methods.agent.session.cancel, ({ params }) => turns.get(params.sessionId)?.abort());

// --- v2 ---------------------------------------------------------------------------------------------------

const sessions = new Map(); // session id -> { cwd, open, state, history, turn, cancels, stop }
const invalid = (details) => v2.RequestError.invalidParams({ details });

function opened(sessionId) {
  const session = sessions.get(sessionId);
  if (!session?.open) throw new v2.RequestError(-32002, "Resource not found", { sessionId });
  return session;
}

/** A prompt that comes during a turn is held until that has ended. A cancel takes it away. */
async function promptV2({ params: { sessionId, prompt }, client }) {
  const session = opened(sessionId);
  if (prompt.some(({ type }) => type !== "text" && type !== "resource_link")) throw invalid("unknown content");
  const { turn: before, cancels } = session;
  let ended;
  session.turn = new Promise((resolve) => (ended = resolve));
  await before;
  if (session.cancels !== cancels) {
    ended();
    throw v2.RequestError.requestCancelled();
  }
  session.stop = new AbortController();
  const messageId = `msg_${randomUUID()}`;
  void turnV2(session, sessionId, messageId, prompt, client).finally(ended);
  return { messageId };
}

async function turnV2(session, sessionId, userMessage, prompt, client) {
  const update = (value) => client.notify(v2.methods.client.session.update, { sessionId, update: value });
  const state = (value) => update({ sessionUpdate: "state_update", ...(session.state = value) });
  const messageId = `msg_${randomUUID()}`;
  const { signal } = session.stop;
  const turn = {
    signal,
    cancelled: "cancelled",
    say(text) {
      remember(session, "agent_message", messageId, { type: "text", text });
      return update({ sessionUpdate: "agent_message_chunk", messageId, content: { type: "text", text } });
    },
    call(fields) {
      session.history.push({ sessionUpdate: "tool_call_update", ...fields });
      return update({ sessionUpdate: "tool_call_update", ...fields });
    },
    async ask(toolCall) {
      await state({ state: "requires_action" });
      const subject = { type: "tool_call", toolCall };
      const request = { sessionId, title: "Touch a file?", subject, options: OPTIONS };
      const options = { cancellationSignal: signal, stopWaitingOnCancel: true };
      const answer = client.request(v2.methods.client.session.requestPermission, request, options);
      const { outcome } = await answer.catch(() => ({ outcome: {} }));
      if (!signal.aborted) await state({ state: "running" });
      return chosen(outcome);
    },
  };
  for (const block of prompt) remember(session, "user_message", userMessage, block);
  await update({ sessionUpdate: "user_message", messageId: userMessage, content: prompt });
  await state({ state: "running" });
  try {
    await work(turn, textOf(prompt));
    await state({ state: "idle", stopReason: signal.aborted ? "cancelled" : "end_turn" });
  } catch (error) {
    await state({ state: "idle", stopReason: "error", error: { code: -32603, message: error.message } });
  }
}

/** Keeps whole messages for a replay. */
function remember({ history }, sessionUpdate, messageId, block) {
  const message = history.find((entry) => entry.messageId === messageId);
  if (message) message.content.push(block);
  else history.push({ sessionUpdate, messageId, content: [block] });
}

function cancel(session) {
  session.cancels++;
  session.stop?.abort();
}

const { session: methods, toolCall, terminal } = v2.methods.agent;
const agentV2 = v2
  .agent({ name: INFO.name })
  .onRequest(v2.methods.agent.initialize, () => ({
    protocolVersion: v2.PROTOCOL_VERSION,
    info: INFO,
    capabilities: { session: {} },
  }))
  .onRequest(methods.new, ({ params: { cwd, mcpServers } }) => {
    if (mcpServers?.length) throw invalid("no MCP servers");
    const sessionId = `sess_${randomUUID()}`;
    const state = { state: "idle" };
    sessions.set(sessionId, { cwd, open: true, state, history: [], turn: Promise.resolve(), cancels: 0 });
    return { sessionId };
  })
  .onRequest(methods.list, ({ params: { cwd, cursor } }) => {
    if (cursor != null) throw invalid("unknown cursor");
    const all = [...sessions].map(([sessionId, session]) => ({ sessionId, cwd: session.cwd }));
    return { sessions: all.filter((entry) => cwd == null || entry.cwd === cwd) };
  })
  .onRequest(methods.resume, async ({ params: { sessionId, replayFrom, mcpServers }, client }) => {
    const session = sessions.get(sessionId);
    if (session === undefined) throw new v2.RequestError(-32002, "Resource not found", { sessionId });
    if (replayFrom != null && replayFrom.type !== "start") throw invalid("unknown cursor");
    if (mcpServers?.length) throw invalid("no MCP servers");
    session.open = true;
    const replay = replayFrom == null ? [] : session.history;
    const updates = [...replay, { sessionUpdate: "state_update", ...session.state }];
    // All at once, so that no update of a running turn comes in between.
    const sent = updates.map((update) => client.notify(v2.methods.client.session.update, { sessionId, update }));
    await Promise.all(sent);
    return {};
  })
  .onRequest(methods.close, async ({ params: { sessionId } }) => {
    const session = sessions.get(sessionId);
    if (session !== undefined) {
      session.open = false;
      cancel(session);
      await session.turn;
    }
    return {};
  })
  .onRequest(methods.prompt, promptV2)
  .onNotification(methods.cancel, ({ params }) => {
    if (sessions.has(params.sessionId)) cancel(sessions.get(params.sessionId));
  });

for (const method of [toolCall?.cancel, terminal?.cancel]) {
  if (method === undefined) continue; // older than the method
  agentV2.onRequest(method, () => {
    throw invalid("this cannot be cancelled");
  });
}

await serve(v2.agentProtocolRouter().withV1(agentV1).withV2(agentV2), v2.ndJsonStream);
