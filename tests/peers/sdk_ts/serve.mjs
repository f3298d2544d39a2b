// Serves an agent of the official TypeScript SDK: over stdio, or with `--http` at a port of its own, over HTTP and
// WebSockets, which it prints as one JSON line. It ends with its stdin.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";

import { folder, loadSdk } from "./load.mjs";

export async function serve(agent, lines) {
  if (!process.argv.includes("--http")) {
    const connection = agent.connect(lines(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
    await connection.closed; // the end of stdin
    process.exit(0);
  }
  const { AcpServer } = await loadSdk("/experimental/server");
  const { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } = await loadSdk("/experimental/node");
  const { WebSocketServer } = createRequire(join(folder, "package.json"))("ws");
  const acp = new AcpServer({ agent });
  const server = createServer(createNodeHttpHandler(acp));
  server.on("upgrade", createNodeWebSocketUpgradeHandler(acp, new WebSocketServer({ noServer: true })));
  server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
  process.stdin.resume().on("end", () => process.exit(0));
}
