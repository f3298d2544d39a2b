// A v1 agent of the official TypeScript SDK with modes, a config option and a command.

import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const acp = await loadSdk("");
const { agent: methods, client: toClient } = acp.methods;

const modes = {
  currentModeId: "ask",
  availableModes: [
    { id: "ask", name: "Ask" },
    { id: "code", name: "Code" },
  ],
};
const model = {
  type: "select",
  id: "model",
  name: "Model",
  category: "model",
  currentValue: "fast",
  options: [
    { group: "small", name: "Small", options: [{ value: "fast", name: "Fast" }] },
    { group: "large", name: "Large", options: [{ value: "deep", name: "Deep" }] },
  ],
};
const sessionId = "s";
const update = (client, value) => client.notify(toClient.session.update, { sessionId, update: value });

const connection = acp
  .agent({ name: "modes" })
  .onRequest(methods.initialize, ({ params }) => {
    model.description = JSON.stringify(params.clientCapabilities.session);
    return { protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {} };
  })
  .onRequest(methods.session.new, () => ({ sessionId, modes, configOptions: [model] }))
  .onRequest(methods.session.setMode, ({ params }) => {
    modes.currentModeId = params.modeId;
    return {};
  })
  .onRequest(methods.session.setConfigOption, ({ params }) => {
    model.currentValue = params.value;
    return { configOptions: [model] };
  })
  .onRequest(methods.session.prompt, async ({ params, client }) => {
    const commands = [{ name: "review", description: "Review", input: { hint: "what" } }];
    await update(client, { sessionUpdate: "available_commands_update", availableCommands: commands });
    await update(client, { sessionUpdate: "current_mode_update", currentModeId: "ask" });
    await update(client, { sessionUpdate: "usage_update", used: 1, size: 2 });
    const content = { type: "text", text: params.prompt[0].text };
    await update(client, { sessionUpdate: "agent_message_chunk", content });
    return { stopReason: "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

await connection.closed;
process.exit(0);
