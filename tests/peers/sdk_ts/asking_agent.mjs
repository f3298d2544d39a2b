// An agent of the official TypeScript SDK, v1 or v2, that asks for a form and for a visit.
//
//     node asking_agent.mjs v1|v2
//
// It says what it was told a client can do, and what came of its questions.

import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const v1 = process.argv[2] === "v1";
const acp = await loadSdk(v1 ? "" : "/experimental/v2");
const { agent: methods, client: toClient } = acp.methods;
const sessionId = "s";
const requestedSchema = {
  type: "object",
  properties: {
    name: { type: "string", title: "Name", minLength: 2, pattern: "^[A-Z]" },
    size: { type: "string", oneOf: [{ const: "s", title: "Small" }], default: "s" },
    extras: { type: "array", items: { anyOf: [{ const: "a", title: "A" }] }, minItems: 1 },
    count: { type: "integer", minimum: 1, default: 2 },
    gift: { type: "boolean" },
  },
  required: ["name"],
};
let able;

async function ask(client) {
  const form = await client.request(toClient.elicitation.create, {
    mode: "form",
    sessionId,
    message: "What shall it be?",
    requestedSchema,
  });
  const visit = await client.request(toClient.elicitation.create, {
    mode: "url",
    sessionId,
    message: "Please pay",
    url: "https://example.com/pay",
    elicitationId: "e1",
  });
  await client.notify(toClient.elicitation.complete, { elicitationId: "e1" });
  const text = JSON.stringify({ able, form, visit });
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text }, messageId: "a1" };
  await client.notify(toClient.session.update, { sessionId, update });
}

const state = (client, state, more) =>
  client.notify(toClient.session.update, { sessionId, update: { sessionUpdate: "state_update", state, ...more } });

const connection = acp
  .agent({ name: "asking" })
  .onRequest(methods.initialize, ({ params }) => {
    able = (v1 ? params.clientCapabilities : params.capabilities).elicitation;
    const info = { name: "asking", version: "1.0.0" };
    return v1
      ? { protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {}, agentInfo: info }
      : { protocolVersion: acp.PROTOCOL_VERSION, capabilities: { session: {} }, info };
  })
  .onRequest(methods.session.new, () => ({ sessionId }))
  .onRequest(methods.session.prompt, async ({ params, client }) => {
    if (v1) {
      await ask(client);
      return { stopReason: "end_turn" };
    }
    setImmediate(async () => {
      const update = { sessionUpdate: "user_message", messageId: "u1", content: params.prompt };
      await client.notify(toClient.session.update, { sessionId, update });
      await state(client, "running");
      await ask(client);
      await state(client, "idle", { stopReason: "end_turn" });
    });
    return { messageId: "u1" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

await connection.closed;
process.exit(0);
