// A client of the official TypeScript SDK, v1 or v2, that sets options and modes and runs a command.
//
//     node configure_client.mjs v1|v2 -- AGENT…
//
// It prints one JSON object: what it was given, and what came of each step. The SDK checks every shape.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const [version, , command, ...args] = process.argv.slice(2);
const v1 = version === "v1";
const acp = await loadSdk(v1 ? "" : "/experimental/v2");
const { agent: toAgent, client: methods } = acp.methods;

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const updates = [];
const connection = acp
  .client({ name: "configure" })
  .onNotification(methods.session.update, ({ params }) => void updates.push(params.update))
  .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
const { agent } = connection;
const info = { name: "configure", version: "1.0.0" };

await agent.request(toAgent.initialize, {
  protocolVersion: acp.PROTOCOL_VERSION,
  ...(v1
    ? { clientInfo: info, clientCapabilities: { session: { configOptions: { boolean: {} }, notices: {}, compaction: {} } } }
    : { info, capabilities: {} }),
});
const given = await agent.request(toAgent.session.new, { cwd: "/", mcpServers: [] });
const { sessionId } = given;
const id = v1 ? {} : { type: "id" };
const set = await agent.request(toAgent.session.setConfigOption, { sessionId, configId: "model", value: "deep", ...id });
const loud = await agent.request(toAgent.session.setConfigOption, {
  sessionId,
  configId: "loud",
  type: "boolean",
  value: true,
});
const mode = v1
  ? await agent.request(toAgent.session.setMode, { sessionId, modeId: "code" })
  : await agent.request(toAgent.session.setConfigOption, { sessionId, configId: "mode", value: "code", ...id });
const ended = new Promise((resolve) => {
  const look = setInterval(() => {
    if (v1 || updates.some((update) => update.state === "idle")) resolve(clearInterval(look));
  }, 5);
});
await agent.request(toAgent.session.prompt, { sessionId, prompt: [{ type: "text", text: "/tell it all" }] });
await ended;
process.stdout.write(`${JSON.stringify({ given, set, loud, mode, updates })}\n`);
connection.close();
child.kill();
process.exit(0);
