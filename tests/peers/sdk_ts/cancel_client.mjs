// A v2 client of the official TypeScript SDK that cancels a tool call and a terminal as soon as they are offered.
//
//     node cancel_client.mjs -- AGENT…
//
// It prints one JSON object: the answers, and the updates. The SDK checks every shape.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const [, command, ...args] = process.argv.slice(2);
const acp = await loadSdk("/experimental/v2");
const { agent: toAgent, client: methods } = acp.methods;

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const updates = [];
const answers = [];
let ended;
const idle = new Promise((resolve) => (ended = resolve));
const connection = acp
  .client({ name: "cancel" })
  .onNotification(methods.session.update, async ({ params: { sessionId, update } }) => {
    updates.push(update);
    if (update.state === "idle") ended();
    if (!update.capabilities?.cancel) return;
    const { toolCallId, terminalId } = update;
    const asked = terminalId
      ? agent.request(toAgent.terminal.cancel, { sessionId, terminalId })
      : agent.request(toAgent.toolCall.cancel, { sessionId, toolCallId });
    answers.push(await asked);
  })
  .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
const { agent } = connection;

await agent.request(toAgent.initialize, {
  protocolVersion: acp.PROTOCOL_VERSION,
  info: { name: "cancel", version: "1.0.0" },
  capabilities: {},
});
const { sessionId } = await agent.request(toAgent.session.new, { cwd: "/", mcpServers: [] });
await agent.request(toAgent.session.prompt, { sessionId, prompt: [{ type: "text", text: "go" }] });
await idle;
const [{ toolCallId }] = updates.filter((update) => update.toolCallId);
const late = await agent.request(toAgent.toolCall.cancel, { sessionId, toolCallId }).catch((error) => error.code);
process.stdout.write(`${JSON.stringify({ answers, updates, late })}\n`);
connection.close();
child.kill();
process.exit(0);
