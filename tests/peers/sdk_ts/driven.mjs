// A client of the official TypeScript SDK that does what it is told, over stdio, a WebSocket or HTTP:
//
//     node driven.mjs 1|2 -- AGENT…
//     ACP_TOKEN=… node driven.mjs 1|2 ws://… or http://…
//
// One order a line on stdin, one observation a line on stdout (../README.md has them). It ends with its stdin.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { setImmediate as nextTick } from "node:timers/promises";

import { describe, report } from "./drive.mjs";
import { folder, loadSdk } from "./load.mjs";

const [version, ...target] = process.argv.slice(2);
const speaks = await import(`./speaks_v${version}.mjs`);

let child;
async function open() {
  if (target[0] !== "--") {
    const { createWebSocketStream } = await loadSdk("/experimental/ws-client");
    const { WebSocket } = createRequire(join(folder, "package.json"))("ws");
    const headers = { Authorization: `Bearer ${process.env.ACP_TOKEN}` };
    if (target[0].startsWith("http")) {
      const { createHttpStream } = await loadSdk("/experimental/http-client");
      return createHttpStream(target[0], { headers });
    }
    return createWebSocketStream(target[0], { WebSocket, headers });
  }
  child = spawn(target[1], target.slice(2), { stdio: ["pipe", "pipe", "inherit"] });
  process.once("exit", () => child.kill("SIGKILL"));
  return speaks.lines(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
}

let allow; // answers the question that is open
const agent = speaks.connect(await open(), {
  update: (update) => report({ step: "update", ...describe(update) }),
  async permission({ toolCallId, options }) {
    report({ step: "permission", toolCallId });
    await new Promise((resolve) => (allow = resolve));
    const { optionId } = options.find(({ kind }) => kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  },
});

let sessionId;
const orders = {
  async new({ cwd, meta }) {
    sessionId = await agent.newSession(cwd, meta);
    report({ step: "session", sessionId });
  },
  async join({ session, cwd }) {
    sessionId = session;
    await agent.joinSession(session, cwd);
    await nextTick(); // the handlers of what came before the answer are microtasks away
    report({ step: "session", sessionId });
  },
  async prompt({ text }) {
    const ended = await agent.prompt(sessionId, text);
    await nextTick();
    report({ step: "ended", ...ended });
  },
  cancel: () => agent.cancel(sessionId),
  allow: async () => allow(),
};

const failed = (error) => {
  report({ step: "failed", reason: error.message });
  process.exit(1);
};

report({ step: "initialize", ...(await agent.initialize().catch(failed)) });
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  void orders[order.do](order).catch(failed); // not waited for: a cancel comes amid a prompt
}
child?.stdin.end();
process.exit(0);
