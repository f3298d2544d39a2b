// A client of the official TypeScript SDK, v1 or v2, that offers an MCP server of its own over ACP (unstable).
//
//     node mcp_client.mjs v1|v2 -- AGENT…
//
// It prints one JSON object: what its server was asked, and what the agent told.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const [version, , command, ...args] = process.argv.slice(2);
const v1 = version === "v1";
const acp = await loadSdk(v1 ? "/unstable" : "/experimental/v2/unstable");
const { agent: toAgent, client: methods } = acp.methods;
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const asked = [];
const updates = [];
let idle;
const ended = new Promise((resolve) => (idle = resolve));

const mcp = new acp.McpOverAcpProvider();
const connection = acp
  .client({ name: "offers" })
  .onNotification(methods.session.update, ({ params: { update } }) => {
    updates.push(update);
    if (update.state === "idle") idle();
  })
  .onRequest(methods.mcp.message, mcp.handleRequest)
  .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
const { agent } = connection;
const server = mcp.registerServer(agent, {
  name: "theirs",
  async handler({ method, params, clientInfo, envelopeMeta, notify }) {
    asked.push({ method, params, clientInfo, envelopeMeta });
    if (method === "fails") return { error: { code: -32601, message: "No" } };
    await notify("notifications/progress", { progress: 1 });
    return { result: { resultType: "complete", sum: 5 } };
  },
});

const info = { name: "offers", version: "1" };
await agent.request(toAgent.initialize, {
  protocolVersion: acp.PROTOCOL_VERSION,
  ...(v1 ? { clientInfo: info, clientCapabilities: {} } : { info, capabilities: {} }),
});
const { sessionId } = await agent.request(toAgent.session.new, { cwd: "/", mcpServers: [server.declaration] });
await agent.request(toAgent.session.prompt, {
  sessionId,
  prompt: [{ type: "text", text: "go" }],
  _meta: { traceparent: "00-a-b-01" },
});
if (!v1) await ended;
process.stdout.write(`${JSON.stringify({ asked, updates })}\n`);
connection.close();
child.kill();
process.exit(0);
