// An agent of the official TypeScript SDK, v1 or v2, that takes every kind of content and answers with some;
// with a login and a config option.
//
//     node content_agent.mjs v1|v2
//
// It says what it was prompted with, as JSON, and then sends an image, a link and a resource, with annotations.

import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const v1 = process.argv[2] === "v1";
const acp = await loadSdk(v1 ? "" : "/experimental/v2");
const { agent: methods, client: toClient } = acp.methods;
const sessionId = "s";
const authMethods = [{ ...(v1 ? { id: "key" } : { type: "agent", methodId: "key" }), name: "By key" }];
const model = {
  type: "select",
  [v1 ? "id" : "configId"]: "model",
  name: "Model",
  currentValue: "fast",
  options: [
    { value: "fast", name: "Fast" },
    { value: "deep", name: "Deep" },
  ],
};
let user = "nobody";

const update = (client, update) => client.notify(toClient.session.update, { sessionId, update });

async function answer(client, prompt) {
  const blocks = [
    { type: "text", text: JSON.stringify({ user, prompt }) },
    { type: "image", data: "R0lG", mimeType: "image/gif", annotations: { audience: ["user"], priority: 0.9 } },
    { type: "resource_link", uri: "https://example.org/dots", name: "dots", title: "More dots" },
    { type: "resource", resource: { uri: "file:///dots.txt", text: ". . ." } },
  ];
  for (const content of blocks) {
    await update(client, { sessionUpdate: "agent_message_chunk", messageId: "a1", content });
  }
}

const connection = acp
  .agent({ name: "content" })
  .onRequest(methods.initialize, () => {
    const info = { name: "content", version: "1.0.0" };
    return v1
      ? {
          protocolVersion: acp.PROTOCOL_VERSION,
          agentCapabilities: { promptCapabilities: { image: true, audio: true, embeddedContext: true } },
          agentInfo: info,
          authMethods,
        }
      : {
          protocolVersion: acp.PROTOCOL_VERSION,
          capabilities: { session: { prompt: { image: {}, audio: {}, embeddedContext: {} } } },
          info,
          authMethods,
        };
  })
  .onRequest(v1 ? methods.authenticate : methods.auth.login, ({ params }) => {
    user = params.methodId;
    return {};
  })
  .onRequest(methods.session.new, () => ({ sessionId, configOptions: [model] }))
  .onRequest(methods.session.setConfigOption, ({ params }) => {
    model.currentValue = params.value;
    return { configOptions: [model] };
  })
  .onRequest(methods.session.prompt, async ({ params, client }) => {
    if (v1) {
      await answer(client, params.prompt);
      return { stopReason: "end_turn" };
    }
    setImmediate(async () => {
      await update(client, { sessionUpdate: "user_message", messageId: "u1", content: params.prompt });
      await update(client, { sessionUpdate: "state_update", state: "running" });
      await answer(client, params.prompt);
      await update(client, { sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" });
    });
    return { messageId: "u1" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

await connection.closed;
process.exit(0);
