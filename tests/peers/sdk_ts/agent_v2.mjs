// An ACP v2 agent over stdio or HTTP, written with the official TypeScript SDK's experimental v2.
//
// Run it with `node agent_v2.mjs` (load.mjs says how it finds the SDK). What it does is in the prompt's
// text: `stream N`, `ping`, `permission`, `wait`; anything else is echoed in two chunks (see ../README.md).
// A prompt is answered with its message id when it is inserted; the turn goes on after the answer and ends
// with the state `idle`. A prompt that comes while a turn is open is held until that turn has ended.

import { randomUUID } from "node:crypto";

import { loadSdk } from "./load.mjs";
import { serve } from "./serve.mjs";

const acp = await loadSdk("/experimental/v2");
const { agent: methods, client: toClient } = acp.methods;

const CHUNK = "forty characters of text, neither more .";
const OPTIONS = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];

const sessions = new Map(); // session id -> { turn, cancels, cancel }

async function prompt({ params: { sessionId, prompt }, client }) {
  const session = sessions.get(sessionId);
  if (session === undefined) throw acp.RequestError.sessionNotFound(sessionId);
  const { turn: before, cancels } = session;
  let ended;
  session.turn = new Promise((resolve) => (ended = resolve));
  await before;
  if (session.cancels !== cancels) {
    ended();
    throw acp.RequestError.requestCancelled();
  }
  const messageId = `msg_${randomUUID()}`;
  void turn(session, sessionId, messageId, prompt, client)
    .catch((error) => console.error("turn failed:", error))
    .finally(ended);
  return { messageId };
}

async function turn(session, sessionId, userMessageId, prompt, client) {
  const update = (value) => client.notify(toClient.session.update, { sessionId, update: value });
  const state = (state, fields) => update({ sessionUpdate: "state_update", state, ...fields });
  const messageId = `msg_${randomUUID()}`;
  const say = (text) =>
    update({ sessionUpdate: "agent_message_chunk", messageId, content: { type: "text", text } });

  await update({ sessionUpdate: "user_message", messageId: userMessageId, content: prompt });
  await state("running");
  let stopReason = "end_turn";
  const text = prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
  const stream = /^stream (\d+)$/.exec(text);
  if (stream) {
    for (let left = Number(stream[1]); left > 0; left--) await say(CHUNK);
  } else if (text === "permission") {
    const chosen = await ask(sessionId, client, update, state);
    await say(`permission: ${chosen}`);
    if (chosen === "cancelled") stopReason = "cancelled";
  } else if (text === "wait") {
    const cancelled = new Promise((resolve) => (session.cancel = resolve));
    await say("waiting");
    await cancelled;
    await say("late");
    stopReason = "cancelled";
  } else if (text !== "ping") {
    const characters = Array.from(text);
    const half = Math.ceil(characters.length / 2);
    await say(characters.slice(0, half).join(""));
    await say(characters.slice(half).join(""));
  }
  await state("idle", { stopReason });
}

async function ask(sessionId, client, update, state) {
  const toolCall = { toolCallId: `call_${randomUUID()}`, title: "Touch a file", kind: "edit", status: "pending" };
  await update({ sessionUpdate: "tool_call_update", ...toolCall });
  await state("requires_action");
  const { outcome } = await client.request(toClient.session.requestPermission, {
    sessionId,
    title: "Touch a file?",
    subject: { type: "tool_call", toolCall },
    options: OPTIONS,
  });
  await state("running");
  const chosen = outcome.outcome === "selected" ? outcome.optionId : "cancelled";
  const status = chosen === "yes" ? "completed" : "failed";
  await update({ sessionUpdate: "tool_call_update", toolCallId: toolCall.toolCallId, status });
  return chosen;
}

const agent = acp
  .agent({ name: "sdk-ts-agent-v2" })
  .onRequest(methods.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "sdk-ts-agent-v2", version: "1.0.0" },
    capabilities: { session: {} },
  }))
  .onRequest(methods.session.new, () => {
    const sessionId = `sess_${randomUUID()}`;
    sessions.set(sessionId, { turn: Promise.resolve(), cancels: 0 });
    return { sessionId };
  })
  .onRequest(methods.session.prompt, prompt)
  .onNotification(methods.session.cancel, ({ params }) => {
    const session = sessions.get(params.sessionId);
    if (session === undefined) return;
    session.cancels++;
    session.cancel?.();
  });

await serve(agent, acp.ndJsonStream);
