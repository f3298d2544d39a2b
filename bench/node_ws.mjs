// The other side of the hub benchmark: what a broadcast costs with Node's `ws`, without a journal or a protocol.
//
//   WS=…/node_modules/ws node node_ws.mjs FEEDER…
//
// Starts the feeder, prints its own port, and sends every line of the feeder to every client with `client.send`.
// What comes on stdin goes to the feeder.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const { WebSocketServer } = createRequire(import.meta.url)(process.env.WS);
const [command, ...rest] = process.argv.slice(2);
const feeder = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"] });
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });

server.on("listening", () => console.log(server.address().port));
process.stdin.pipe(feeder.stdin);
process.stdin.on("end", () => process.exit(0));

let partial = Buffer.alloc(0);
feeder.stdout.on("data", (data) => {
  if (partial.length) data = Buffer.concat([partial, data]);
  let from = 0;
  for (let at; (at = data.indexOf(10, from)) >= 0; from = at + 1) {
    const line = data.subarray(from, at);
    for (const client of server.clients) client.send(line, { binary: false });
  }
  partial = data.subarray(from);
});
