// A client of the official TypeScript SDK, v1 or v2, that logs in and tries what an agent offers, prompt by prompt.
//
//     node breadth_client.mjs v1|v2 -- AGENT…
//
// It prints one JSON object: what it was given, and the updates and the answer of each prompt. The SDK checks every
// shape. Permissions are granted, forms are filled in, visits are agreed to.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const [version, , command, ...args] = process.argv.slice(2);
const v1 = version === "v1";
const acp = await loadSdk(v1 ? "" : "/experimental/v2");
const { agent: toAgent, client: methods } = acp.methods;

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const asked = [];
let updates = [];
let onIdle = () => {};
let sessionId;
const connection = acp
  .client({ name: "breadth" })
  .onNotification(methods.session.update, ({ params }) => {
    if (params.sessionId !== sessionId) return; // of a subagent
    updates.push(params.update);
    if (params.update.state === "idle") onIdle();
  })
  .onNotification(methods.elicitation.complete, () => {})
  .onRequest(methods.session.requestPermission, ({ params }) => {
    asked.push("permission");
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onRequest(methods.elicitation.create, ({ params }) => {
    asked.push(params.mode);
    if (params.mode === "url") return { action: "accept" };
    const user = "user" in params.requestedSchema.properties;
    return { action: "accept", content: user ? { user: "Ann" } : { to: "Ulm" } };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
const { agent } = connection;
const info = { name: "breadth", version: "1.0.0" };
const able = { elicitation: { form: {}, url: {} } };

const given = await agent.request(toAgent.initialize, {
  protocolVersion: acp.PROTOCOL_VERSION,
  ...(v1
    ? { clientInfo: info, clientCapabilities: { ...able, session: { notices: {}, compaction: {} } } }
    : { info, capabilities: able }),
});
await agent.request(v1 ? toAgent.authenticate : toAgent.auth.login, { methodId: "name" });
({ sessionId } = await agent.request(toAgent.session.new, { cwd: "/", mcpServers: [] }));

const content = [
  { type: "text", text: "this: " },
  { type: "image", data: "R0lG", mimeType: "image/gif", annotations: { audience: ["assistant"], priority: 0.5 } },
  { type: "audio", data: "AAAA", mimeType: "audio/wav" },
  { type: "resource_link", uri: "file:///song.py", name: "song.py", title: "A song", size: 12 },
  { type: "resource", resource: { uri: "file:///all.txt", text: "all of it", mimeType: "text/plain" } },
];
const words = "/draw /say /plan /edit /run /ask /visit /status /compact /delegate /private".split(" ");
const turns = {};
for (const prompt of [content, ...words.map((text) => [{ type: "text", text }])]) {
  updates = [];
  const idle = new Promise((resolve) => (onIdle = resolve));
  const answer = await agent.request(toAgent.session.prompt, { sessionId, prompt });
  if (!v1) await idle;
  turns[prompt[0].text] = { answer, updates };
}
process.stdout.write(`${JSON.stringify({ given, asked, turns })}\n`);
connection.close();
child.kill();
process.exit(0);
