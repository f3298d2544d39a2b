// A client of the official TypeScript SDK, v1 or v2, that fills in a form, declines one and agrees to a visit.
//
//     node asking_client.mjs v1|v2 -- AGENT…
//
// It prints one JSON object: what it was asked, what was completed, and what it was told. The SDK checks every shape.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const [version, , command, ...args] = process.argv.slice(2);
const v1 = version === "v1";
const acp = await loadSdk(v1 ? "" : "/experimental/v2");
const { agent: toAgent, client: methods } = acp.methods;

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const asked = [];
const updates = [];
const content = {
  fullName: "Ada",
  mail: "ada@example.com",
  due: "2030-01-02",
  count: 3,
  share: 0.25,
  gift: true,
  colour: "blue",
  size: "xl",
  extras: ["b"],
  sizes: ["s", "xl"],
};
let completed;
const done = new Promise((resolve) => (completed = resolve));
const connection = acp
  .client({ name: "asking" })
  .onNotification(methods.session.update, ({ params }) => void updates.push(params.update))
  .onNotification(methods.elicitation.complete, ({ params }) => void completed(params.elicitationId))
  .onRequest(methods.elicitation.create, ({ params }) => {
    asked.push(params);
    if (params.mode === "url") return { action: "accept" };
    return asked.length === 1 ? { action: "accept", content } : { action: "decline" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
const { agent } = connection;
const info = { name: "asking", version: "1.0.0" };
const able = { elicitation: { form: {}, url: {} } };

await agent.request(toAgent.initialize, {
  protocolVersion: acp.PROTOCOL_VERSION,
  ...(v1 ? { clientInfo: info, clientCapabilities: able } : { info, capabilities: able }),
});
const { sessionId } = await agent.request(toAgent.session.new, { cwd: "/", mcpServers: [] });
const ended = new Promise((resolve) => {
  const look = setInterval(() => {
    if (v1 || updates.some((update) => update.state === "idle")) resolve(clearInterval(look));
  }, 5);
});
await agent.request(toAgent.session.prompt, { sessionId, prompt: [{ type: "text", text: "go" }] });
await ended;
process.stdout.write(`${JSON.stringify({ asked, completed: await done, updates })}\n`);
connection.close();
child.kill();
process.exit(0);
