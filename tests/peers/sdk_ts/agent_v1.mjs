// An ACP v1 agent over stdio or HTTP, written with the official TypeScript SDK.
//
// Run it with `node agent_v1.mjs` (load.mjs says how it finds the SDK). What it does is in the prompt's
// text: `stream N`, `ping`, `permission`, `wait`; anything else is echoed in two chunks (see ../README.md).

import { randomUUID } from "node:crypto";

import { loadSdk } from "./load.mjs";
import { serve } from "./serve.mjs";

const acp = await loadSdk("");
const { agent: methods, client: toClient } = acp.methods;

const CHUNK = "forty characters of text, neither more .";
const OPTIONS = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];

const sessions = new Map(); // session id -> { cancel }, a function while a prompt waits for it

async function prompt({ params: { sessionId, prompt }, client }) {
  const session = sessions.get(sessionId);
  if (session === undefined) throw acp.RequestError.sessionNotFound(sessionId);
  const update = (value) => client.notify(toClient.session.update, { sessionId, update: value });
  const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

  const text = prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
  const stream = /^stream (\d+)$/.exec(text);
  if (stream) {
    for (let left = Number(stream[1]); left > 0; left--) await say(CHUNK);
  } else if (text === "permission") {
    const chosen = await ask(sessionId, client, update);
    await say(`permission: ${chosen}`);
    if (chosen === "cancelled") return { stopReason: "cancelled" };
  } else if (text === "wait") {
    const cancelled = new Promise((resolve) => (session.cancel = resolve));
    await say("waiting");
    await cancelled;
    await say("late");
    return { stopReason: "cancelled" };
  } else if (text !== "ping") {
    const characters = Array.from(text);
    const half = Math.ceil(characters.length / 2);
    await say(characters.slice(0, half).join(""));
    await say(characters.slice(half).join(""));
  }
  return { stopReason: "end_turn" };
}

async function ask(sessionId, client, update) {
  const toolCall = { toolCallId: `call_${randomUUID()}`, title: "Touch a file", kind: "edit", status: "pending" };
  await update({ sessionUpdate: "tool_call", ...toolCall });
  const request = { sessionId, toolCall, options: OPTIONS };
  const { outcome } = await client.request(toClient.session.requestPermission, request);
  const chosen = outcome.outcome === "selected" ? outcome.optionId : "cancelled";
  const status = chosen === "yes" ? "completed" : "failed";
  await update({ sessionUpdate: "tool_call_update", toolCallId: toolCall.toolCallId, status });
  return chosen;
}

async function loadSession({ params: { sessionId }, client }) {
  sessions.set(sessionId, sessions.get(sessionId) ?? {});
  for (const [sessionUpdate, text] of [
    ["user_message_chunk", "an earlier question"],
    ["agent_message_chunk", "an earlier answer"],
  ]) {
    const update = { sessionUpdate, content: { type: "text", text } };
    await client.notify(toClient.session.update, { sessionId, update });
  }
  return {};
}

const agent = acp
  .agent({ name: "sdk-ts-agent-v1" })
  .onRequest(methods.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentInfo: { name: "sdk-ts-agent-v1", version: "1.0.0" },
    agentCapabilities: { loadSession: true },
  }))
  .onRequest(methods.session.new, () => {
    const sessionId = `sess_${randomUUID()}`;
    sessions.set(sessionId, {});
    return { sessionId };
  })
  .onRequest(methods.session.load, loadSession)
  .onRequest(methods.session.prompt, prompt)
  .onNotification(methods.session.cancel, ({ params }) => sessions.get(params.sessionId)?.cancel?.());

await serve(agent, acp.ndJsonStream);
