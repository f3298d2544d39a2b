// A v1 agent of the official TypeScript SDK that uses the files and terminals of its client.
//
// It says, as JSON, what it was offered and what came of each step.

import { Readable, Writable } from "node:stream";

import { loadSdk } from "./load.mjs";

const acp = await loadSdk("");
const { agent: methods, client: toClient } = acp.methods;
const sessionId = "s";
let able;
let cwd;

async function work({ client }) {
  const update = (value) => client.notify(toClient.session.update, { sessionId, update: value });
  const code = (path) =>
    client.request(toClient.fs.readTextFile, { sessionId, path }).then(
      () => null,
      (error) => error.code,
    );
  const told = { able };
  await client.request(toClient.fs.writeTextFile, { sessionId, path: `${cwd}/f`, content: "1\n2\n3\n" });
  told.read = (
    await client.request(toClient.fs.readTextFile, { sessionId, path: `${cwd}/f`, line: 2, limit: 1 })
  ).content;
  told.missing = await code(`${cwd}/none`);
  told.outside = await code("/etc/passwd");
  const { terminalId } = await client.request(toClient.terminal.create, {
    sessionId,
    command: "cat",
    args: ["f"],
    cwd,
  });
  await update({
    sessionUpdate: "tool_call",
    toolCallId: "c",
    title: "Look",
    kind: "execute",
    status: "in_progress",
    content: [{ type: "terminal", terminalId }],
  });
  told.exit = (await client.request(toClient.terminal.waitForExit, { sessionId, terminalId })).exitCode;
  told.output = (await client.request(toClient.terminal.output, { sessionId, terminalId })).output;
  await client.request(toClient.terminal.release, { sessionId, terminalId });
  await update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" });
  await update({
    sessionUpdate: "agent_message_chunk",
    content: { type: "text", text: JSON.stringify(told) },
  });
  return { stopReason: "end_turn" };
}

const connection = acp
  .agent({ name: "workspace" })
  .onRequest(methods.initialize, ({ params }) => {
    const { fs, terminal } = params.clientCapabilities;
    able = { fs, terminal };
    return { protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {} };
  })
  .onRequest(methods.session.new, ({ params }) => {
    cwd = params.cwd;
    return { sessionId };
  })
  .onRequest(methods.session.prompt, work)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

await connection.closed;
process.exit(0);
