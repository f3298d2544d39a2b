// Folds updates as the page does: a line in is an array of them, a line out what came of it.

import { createInterface } from "node:readline";
import { SessionFold } from "../../src/antiphon/web/static/js/fold/session.js";

const SHOWN = {
  message: ["blocks", "meta", "given", "deleted", "about"],
  tool: ["name", "title", "toolKind", "status", "content", "locations", "rawInput", "rawOutput",
      "capabilities", "meta"],
  compaction: ["status", "blocks", "error", "meta"],
  subagent: ["title", "description", "capabilities", "state", "cwd", "additionalDirectories", "meta"],
  note: ["senderSessionId", "recipientSessionId", "senderMessageId", "recipientMessageId", "blocks", "meta"],
};
const TERMINAL = ["key", "command", "cwd", "exitStatus", "size", "capabilities", "meta", "output",
    "reported"];
const given = ({ annotations }) => annotations && [...annotations.values()].map(({ id, kind, value, by, at }) =>
  [id, kind, value, by.clientId, at]);
const pick = (from, names) => Object.fromEntries(names.map((name) => [name, from[name]]));

/** An item with what its getters give. */
const plain = (item) => pick(item, ["key", ...SHOWN[item.kind]]);

function shown(fold) {
  return {
    items: fold.items.filter((item) => SHOWN[item.kind]).map((item) =>
      pick({ ...plain(item), given: given(item) }, ["key", ...SHOWN[item.kind]])),
    terminals: [...fold.terminals.values()].map((terminal) => pick(terminal, TERMINAL)),
    plans: [...fold.plans.values()].map(({ id, ...plan }) => ({ planId: id, ...plan })),
    commands: fold.commands,
    options: fold.options,
    info: fold.info,
    usage: fold.usage,
    state: fold.turn.state,
    stopReason: fold.turn.stopReason,
    unknown: fold.unknown,
    ends: fold.items.filter((item) => item.kind === "end").length,
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const fold = new SessionFold();
  for (const { update, asked } of JSON.parse(line)) {
    if (asked) fold.asked(asked);
    else fold.apply(update);
  }
  console.log(JSON.stringify(shown(fold)));
}
