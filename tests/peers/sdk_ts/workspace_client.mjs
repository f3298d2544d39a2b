// A v1 client of the official TypeScript SDK that offers files and terminals, all of them made up.
//
//     node workspace_client.mjs -- AGENT…
//
// It prints one JSON object: what the agent asked for, and the updates. The SDK checks every shape.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const [, command, ...args] = process.argv.slice(2);
const acp = await loadSdk("");
const { agent: toAgent, client: methods } = acp.methods;

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const asked = [];
const updates = [];
const connection = acp
  .client({ name: "workspace" })
  .onNotification(methods.session.update, ({ params }) => void updates.push(params.update))
  .onRequest(methods.fs.writeTextFile, ({ params }) => {
    asked.push(["write", params.path, params.content]);
    return {};
  })
  .onRequest(methods.fs.readTextFile, ({ params }) => {
    asked.push(["read", params.path, params.line ?? null, params.limit ?? null]);
    if (params.path === "/missing") throw new acp.RequestError(-32002, "Resource not found");
    return { content: "two\n" };
  })
  .onRequest(methods.terminal.create, ({ params }) => {
    asked.push(["create", params.command, params.args]);
    return { terminalId: "T" };
  })
  .onRequest(methods.terminal.output, ({ params }) => {
    asked.push(["output", params.terminalId]);
    return { output: "made up\n", truncated: false, exitStatus: { exitCode: 0 } };
  })
  .onRequest(methods.terminal.waitForExit, ({ params }) => {
    asked.push(["wait", params.terminalId]);
    return { exitCode: 0 };
  })
  .onRequest(methods.terminal.kill, ({ params }) => {
    asked.push(["kill", params.terminalId]);
    return {};
  })
  .onRequest(methods.terminal.release, ({ params }) => {
    asked.push(["release", params.terminalId]);
    return {};
  })
  .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
const { agent } = connection;

await agent.request(toAgent.initialize, {
  protocolVersion: acp.PROTOCOL_VERSION,
  clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
});
const { sessionId } = await agent.request(toAgent.session.new, { cwd: "/", mcpServers: [] });
await agent.request(toAgent.session.prompt, { sessionId, prompt: [{ type: "text", text: "go" }] });
process.stdout.write(`${JSON.stringify({ asked, updates })}\n`);
connection.close();
child.kill();
process.exit(0);
