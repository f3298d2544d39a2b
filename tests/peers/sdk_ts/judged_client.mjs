// A client written with the official TypeScript SDK, for the judge: what it gets wrong, the SDK gets wrong.
//
//     node judged_client.mjs v1|v2 AGENT…
//
// It makes a session, sends one prompt, prints the agent's text as it comes, allows what it is asked, and ends with
// 0 when the turn has ended. An agent that ends before makes it end with 1.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [version, command, ...words] = process.argv.slice(2);
const { connect, lines } = await import(`./speaks_${version}.mjs`);

function update({ sessionUpdate, content }) {
  if (sessionUpdate !== "agent_message_chunk" && sessionUpdate !== "agent_message") return;
  for (const block of [content ?? []].flat()) if (block.type === "text") process.stdout.write(block.text);
}

function permission({ options }) {
  const allowed = options.find(({ kind }) => kind.startsWith("allow"));
  return { outcome: allowed ? { outcome: "selected", optionId: allowed.optionId } : { outcome: "cancelled" } };
}

const child = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
const agent = connect(lines(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), { update, permission });
const { protocolVersion } = await agent.initialize();
if (`v${protocolVersion}` !== version) throw new Error(`the agent speaks version ${protocolVersion}`);
await agent.prompt(await agent.newSession(process.cwd()), "hello");
child.stdin.end();
