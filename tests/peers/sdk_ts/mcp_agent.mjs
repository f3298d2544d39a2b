// An agent of the official TypeScript SDK, v1 or v2, that uses an MCP server of its client over ACP (unstable).
//
//     node mcp_agent.mjs v1|v2
//
// A prompt calls `tools/call` and `fails` of the first server it was given, and gives up on `wait`; what came of
// it is said as one message of JSON.

import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const v1 = process.argv[2] === "v1";
const acp = await loadSdk(v1 ? "/unstable" : "/experimental/v2/unstable");
const { agent: methods, client: toClient } = acp.methods;
const mcp = new acp.McpOverAcpCaller({ clientInfo: { name: "ts", version: "1" } });
const sessionId = "s";
let serverId;

async function use(client) {
  const told = [];
  const call = (method, params, options) => mcp.request(client, serverId, method, params, options);
  // The SDK may drop what stands right before the answer, so the server waits until it was heard.
  const heard = (note) => void (told.push(note), call("heard", {}));
  const added = await call("tools/call", { name: "add" }, { onNotification: heard });
  const failed = await call("fails", {});
  const unknown = await mcp.request(client, "nobody", "x", {}).catch((error) => error.code);
  const stop = new AbortController();
  const waiting = call("wait", {}, { signal: stop.signal }).catch((error) => error.code);
  stop.abort();
  return { told, added, failed, unknown, waited: await waiting };
}

async function prompt({ params, client }) {
  const update = (value) => client.notify(toClient.session.update, { sessionId, update: value });
  const work = async () => {
    if (!v1) {
      await update({ sessionUpdate: "user_message", messageId: "u", content: params.prompt });
      await update({ sessionUpdate: "state_update", state: "running" });
    }
    const text = JSON.stringify(await use(client));
    await update({ sessionUpdate: "agent_message_chunk", messageId: "m", content: { type: "text", text } });
    if (!v1) await update({ sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" });
  };
  if (v1) {
    await work();
    return { stopReason: "end_turn" };
  }
  setImmediate(() => void work().catch((error) => console.error(error)));
  return { messageId: "u" };
}

const connection = acp
  .agent({ name: "mcp" })
  .onRequest(methods.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    ...(v1
      ? { agentCapabilities: { mcpCapabilities: { acp: true } } }
      : { info: { name: "mcp", version: "1" }, capabilities: { session: { mcp: { acp: {} } } } }),
  }))
  .onRequest(methods.session.new, ({ params }) => {
    serverId = params.mcpServers[0].serverId;
    return { sessionId };
  })
  .onRequest(methods.session.prompt, prompt)
  .onNotification(methods.mcp.message, mcp.handleNotification)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

await connection.closed;
process.exit(0);
