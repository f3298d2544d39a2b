// What the two TypeScript clients do; each brings only the way its version of the SDK does it.
//
//     node client_vN.mjs [--deadline SECONDS] [--bench stream N | --bench rtt N | --bench spawn] -- AGENT…
//
// Without `--bench`: initialize, a new session and three prompts (one with a permission, one cancelled), with
// one JSON line per observation. A step that does not end in time ends the process with 1 and a reason.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { setImmediate as nextTick } from "node:timers/promises";
import { parseArgs } from "node:util";

const EXIT_DEADLINE = 5; // seconds from the end of the agent's stdin to its exit

/**
 * Runs the whole client. `speaks.connect(stream, handlers)` opens the SDK's client on what `speaks.lines` makes of
 * two web streams, hands updates and permission requests to `handlers`, and returns initialize(), newSession(),
 * joinSession(), prompt(), cancel(), close(). prompt() ends with the turn and gives `{ stopReason, … }`.
 */
export async function drive(speaks) {
  const options = readArguments();
  try {
    await run(options, speaks);
  } catch (error) {
    report({ step: "failed", reason: error.message });
    process.exit(1);
  }
  process.exit(0);
}

async function run({ command, bench, count, deadline }, speaks) {
  const started = performance.now();
  const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  process.once("exit", () => child.kill("SIGKILL"));
  const spawned = once(child, "spawn");
  const exited = once(child, "exit");
  exited.catch(() => {}); // a command that cannot be started is reported by `spawned`
  await spawned;

  const handlers = { update: () => {}, permission: (request) => select(request) };
  const lines = speaks.lines(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const agent = speaks.connect(lines, handlers);
  const within = (what, promise) => timed(what, deadline, promise);

  const initialized = await within("initialize", agent.initialize());
  if (bench === "spawn") {
    report({ seconds: (performance.now() - started) / 1e3 });
  } else {
    if (!bench) report({ step: "initialize", ...initialized });
    const sessionId = await within("new_session", agent.newSession("/tmp"));
    if (!bench) report({ step: "new_session", sessionId });
    if (bench === "stream") await within(`stream ${count}`, streamed(agent, handlers, sessionId, count));
    else if (bench === "rtt") await within(`rtt ${count}`, roundTrips(agent, sessionId, count));
    else await prompts(agent, handlers, sessionId, within);
  }

  child.stdin.end();
  const [code, signal] = await timed("the agent's exit after the end of its stdin", EXIT_DEADLINE, exited);
  agent.close();
  if (code !== 0) throw new Error(`the agent ended with ${code ?? signal} after its stdin was closed`);
  if (!bench) report({ step: "exit", code });
}

async function prompts(agent, handlers, sessionId, within) {
  for (const text of ["hello there", "permission", "wait"]) {
    const updates = [];
    let toCancel = text === "wait";
    handlers.update = (update) => {
      updates.push(describe(update));
      if (toCancel && update.sessionUpdate === "agent_message_chunk") {
        toCancel = false;
        void agent.cancel(sessionId);
      }
    };
    const ended = await within(`prompt "${text}"`, agent.prompt(sessionId, text));
    // The SDK can wake the caller before it has called the handlers of updates that came earlier: they are
    // microtasks away, so a turn of the event loop is enough.
    await nextTick();
    report({ step: "prompt", text, updates, ...ended, ...(text === "wait" && { cancelled: !toCancel }) });
  }
}

async function streamed(agent, handlers, sessionId, count) {
  let handled = 0;
  let allHandled;
  const all = new Promise((resolve) => (allHandled = resolve));
  handlers.update = (update) => {
    if (update.sessionUpdate === "agent_message_chunk" && ++handled === count) allHandled();
  };
  const started = performance.now();
  await Promise.all([agent.prompt(sessionId, `stream ${count}`), all]);
  report({ handled, seconds: (performance.now() - started) / 1e3 });
}

async function roundTrips(agent, sessionId, count) {
  const took = [];
  for (let left = count; left > 0; left--) {
    const started = performance.now();
    await agent.prompt(sessionId, "ping");
    took.push((performance.now() - started) * 1e3);
  }
  took.sort((a, b) => a - b);
  const at = (share) => took[Math.min(took.length - 1, Math.floor(took.length * share))];
  report({ p50_us: at(0.5), p90_us: at(0.9) });
}

function select({ toolCallId, options }) {
  const offered = options.map(({ optionId, kind }) => ({ optionId, kind }));
  report({ step: "permission", toolCallId, options: offered, selected: "yes" });
  return { outcome: { outcome: "selected", optionId: "yes" } };
}

export function describe(update) {
  const seen = { kind: update.sessionUpdate };
  const content = [update.content ?? []].flat().filter((block) => block.type === "text");
  if (content.length > 0) seen.text = content.map((block) => block.text).join("");
  for (const field of ["messageId", "status", "state", "stopReason"]) {
    if (update[field] != null) seen[field] = update[field];
  }
  return seen;
}

export function report(observation) {
  process.stdout.write(JSON.stringify(observation) + "\n");
}

async function timed(what, seconds, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${seconds} s`)), seconds * 1e3);
  });
  try {
    return await Promise.race([promise, late]);
  } catch (error) {
    throw error.message.startsWith(what) ? error : new Error(`${what}: ${error.message}`);
  } finally {
    clearTimeout(timer);
  }
}

function readArguments() {
  const argv = process.argv.slice(2);
  const cut = argv.indexOf("--");
  const command = cut < 0 ? [] : argv.slice(cut + 1);
  const { values, positionals } = parseArgs({
    args: cut < 0 ? argv : argv.slice(0, cut),
    options: { bench: { type: "string" }, deadline: { type: "string" } },
    allowPositionals: true,
  });
  const count = Number(positionals[0]);
  const counted = values.bench === "stream" || values.bench === "rtt";
  const known = counted ? count > 0 : values.bench === undefined || values.bench === "spawn";
  if (command.length === 0 || !known) {
    console.error("usage: [--deadline S] [--bench stream N | --bench rtt N | --bench spawn] -- AGENT…");
    process.exit(2);
  }
  const deadline = Number(values.deadline ?? (values.bench ? 300 : 15));
  return { command, bench: values.bench, count, deadline };
}
