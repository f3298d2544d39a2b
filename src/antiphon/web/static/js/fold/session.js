// The fold of a session: what every update of ACP v2 does to it. Pure: no DOM, no clock, no link.
//
// `changed` gathers what views have to look at again: kinds of events, and `from`, the first changed item.

import { Annotations } from "./annotations.js";
import { ours, patchMeta } from "./content.js";
import { placed, unansweredIn } from "./ends.js";
import { Compaction, Message, Note } from "./messages.js";
import { Terminal } from "./terminals.js";
import { Subagent, Tool } from "./tools.js";
import { touchedBy, touches } from "./touched.js";
import { Turn } from "./turn.js";

const KEPT_UNKNOWN = 256;

export class SessionFold {
  items = [];
  terminals = new Map();
  plans = new Map();
  usage = null;
  commands = [];
  options = [];
  info = { title: null, updatedAt: null, meta: {} };
  turn = new Turn();
  /** What an agent says that the protocol has no name for, kept whole (EXT-09). */
  unknown = [];
  queue = { entries: [], paused: false };
  clients = [];
  /** Questions of the open turn that expired: its end names them. */
  expired = [];
  /** The last prompt of the turn that is open, or about to open. */
  turnPrompt = null;
  changed = new Set();
  from = Infinity;
  /** Another number, items in other places. */
  revision = 0;
  #byKey = new Map();
  #annotations = new Annotations();
  #open = null;
  #tools = new Set();
  #showings = new Map();
  /** The tool calls that have changed files, by their first change. */
  #touching = new Set();
  #touched = [];
  #fresh = true;
  #latestPlan = null;
  #serial = 0;

  // What there is

  item(key) {
    return this.#byKey.get(key) ?? null;
  }

  tool(id) {
    return this.item(`tool/${id}`);
  }

  get plan() {
    return this.plans.get(this.#latestPlan) ?? [...this.plans.values()].at(-1) ?? null;
  }

  get touched() {
    if (this.#tools.size) {
      for (const tool of this.#tools) if (touches(tool)) this.#touching.add(tool);
      this.#tools.clear();
      this.#touched = touchedBy(this.#touching);
    }
    return this.#touched;
  }

  /** What changed since the last time. */
  take() {
    const taken = { kinds: this.changed, from: this.from };
    this.changed = new Set();
    this.from = Infinity;
    return taken;
  }

  // The fold

  apply(update, at) {
    const kind = update?.sessionUpdate;
    if (!Object.hasOwn(FOLDS, kind)) this.#keep(update);
    else if (isWhole(update)) FOLDS[kind](this, update, at);
  }

  #keep(update) {
    if (typeof update?.sessionUpdate !== "string" || update.sessionUpdate.startsWith("_antiphon_")) return;
    this.unknown.push(update);
    if (this.unknown.length > KEPT_UNKNOWN) this.unknown.shift();
  }

  #of(key, make) {
    let item = this.#byKey.get(key);
    if (!item) {
      item = make();
      item.index = this.items.push(item) - 1;
      this.#byKey.set(key, item);
    }
    this.#touch(item);
    return item;
  }

  #touch(item) {
    this.changed.add("transcript");
    if (item.index < this.from) this.from = item.index;
  }

  chunk(role, update, at) {
    const id = update.messageId;
    const message = this.#of(`message/${role}/${id}`, () => new Message(role, id, at));
    this.#opened(message);
    message.complete = false;
    message.append(update.content);
    if (role === "user") this.turnPrompt = id;
  }

  message(role, update, at) {
    const id = update.messageId;
    const message = this.#of(`message/${role}/${id}`, () => new Message(role, id, at));
    this.#opened(message);
    message.complete = true;
    message.patch(update);
    if (role === "user") this.turnPrompt = id;
  }

  #opened(message) {
    if (this.#open === message) return;
    this.#close();
    this.#open = message;
  }

  #close() {
    if (!this.#open || this.#open.complete) return;
    this.#open.complete = true;
    this.#open.version += 1;
    this.#touch(this.#open);
  }

  /** A client has put something on a message, or removed it. */
  annotated(update, removed) {
    const find = (role, id) => this.#byKey.get(`message/${role}/${id}`);
    const message = removed ? this.#annotations.remove(update) : this.#annotations.add(update, find);
    if (message) this.#touch(message);
  }

  note(update, at) {
    return this.#of(`session_message/${update.messageId}`, () => new Note(update.messageId, at));
  }

  compaction(update, at) {
    return this.#of(`compaction/${update.compactionId}`, () => new Compaction(update.compactionId, at));
  }

  subagent(update, at) {
    return this.#of(`subagent/${update.sessionId}`, () => new Subagent(update.sessionId, at));
  }

  toolCall(id, at) {
    const tool = this.#of(`tool/${id}`, () => new Tool(id, at));
    this.#tools.add(tool);
    this.changed.add("files");
    return tool;
  }

  /** A tool call shows its terminals: what these say is a change of the call. */
  showing(tool, parts) {
    for (const part of parts ?? []) {
      if (part?.type === "terminal") this.#showings.set(part.terminalId, tool);
    }
  }

  terminal(id) {
    if (!this.terminals.has(id)) this.terminals.set(id, new Terminal(id));
    const shown = this.#showings.get(id);
    if (shown) {
      shown.version += 1;
      this.#touch(shown);
    }
    this.changed.add("terminals");
    return this.terminals.get(id);
  }

  setPlan(update) {
    const { planId, ...plan } = update.plan ?? {};
    this.plans.set(planId, { id: planId, entries: [], ...plan });
    this.#latestPlan = planId;
    this.changed.add("plan");
  }

  removePlan(update) {
    this.plans.delete(update.planId);
    this.changed.add("plan");
  }

  set(kind, name, value) {
    this[name] = value;
    this.changed.add(kind);
  }

  setUsage(update) {
    const cost = update.cost === undefined ? (this.usage?.cost ?? null) : update.cost; // USAGE-04
    this.set("usage", "usage", { used: update.used, size: update.size, cost });
  }

  setInfo(update) {
    if (update.title !== undefined) this.info.title = update.title;
    if (update.updatedAt !== undefined) this.info.updatedAt = update.updatedAt;
    this.info.meta = patchMeta(this.info.meta, update._meta);
    this.changed.add("info");
  }

  notice(update, at) {
    this.#append({ kind: "notice", severity: update.severity, title: update.title,
      description: update.description ?? null, at });
  }

  state(update, at) {
    const { openedAt } = this.turn;
    const effect = this.turn.apply(update, at);
    this.changed.add("state");
    const closing = this.#fresh && effect === "repeated" && update.state === "idle";
    this.#fresh = false;
    if (effect === "opened") this.#close();
    if (effect !== "ended" && !closing) return;
    this.#close();
    this.turnPrompt = null;
    const { stopReason } = this.turn;
    if (closing && (!stopReason || !this.items.length)) return;
    this.#append({ kind: "end", stopReason, error: update.error ?? null, usage: update.usage ?? null, at,
      since: closing ? null : openedAt, unanswered: this.expired.splice(0) });
  }

  #append(item) {
    this.#serial += 1;
    const key = `${item.kind}/${this.#serial}`;
    this.#of(key, () => ({ id: key, key, version: 0, ...item }));
  }

  /** How and when turns ended, which no replay says: from the items of a timeline. */
  recall(timeline) {
    const turns = [];
    for (const turn of timeline) {
      const prompt = turn.kind === "turn" ? this.item(`message/user/${turn.messageId}`) : null;
      if (!prompt) continue;
      prompt.at ??= turn.start;
      prompt.version += 1;
      turns.push({ ...turn, index: prompt.index, unanswered: unansweredIn(turn, timeline) });
    }
    turns.sort((one, two) => one.index - two.index);
    this.items = placed(this.items, turns, this.#byKey);
    this.items.forEach((item, index) => {
      item.index = index;
    });
    this.revision += 1;
    this.changed.add("transcript");
    this.from = 0;
  }

  /** The tool call that a question is about. */
  asked(call, at) {
    if (typeof call?.toolCallId !== "string") return;
    const tool = this.toolCall(call.toolCallId, at);
    tool.hear(call);
    this.showing(tool, tool.content);
  }

  get waitingFor() {
    return this.turn.shown === "requires_action" ? (ours(this.turn.latest?._meta).waitingFor ?? null) : null;
  }
}

/** Whether what it is about has a name: what is malformed is passed over, as the engine does. */
function isWhole(update) {
  const kind = update.sessionUpdate;
  const id = IDS.find(([begins]) => kind.startsWith(begins))?.[1];
  if (id && typeof update[id] !== "string") return false;
  return !kind.endsWith("_chunk") || kind === "terminal_output_chunk" || typeof update.content === "object";
}

const IDS = [
  ["user_message", "messageId"], ["agent_", "messageId"], ["session_message", "messageId"],
  ["tool_call", "toolCallId"], ["terminal", "terminalId"], ["compaction", "compactionId"],
  ["subagent", "sessionId"], ["plan_removed", "planId"],
];

const message = (role) => (fold, update, at) => fold.message(role, update, at);
const chunk = (role) => (fold, update, at) => fold.chunk(role, update, at);

const FOLDS = {
  user_message: message("user"),
  agent_message: message("agent"),
  agent_thought: message("thought"),
  user_message_chunk: chunk("user"),
  agent_message_chunk: chunk("agent"),
  agent_thought_chunk: chunk("thought"),
  tool_call_update: (fold, update, at) => {
    const tool = fold.toolCall(update.toolCallId, at);
    tool.patch(update);
    fold.showing(tool, update.content);
  },
  tool_call_content_chunk: (fold, update, at) => {
    const tool = fold.toolCall(update.toolCallId, at);
    tool.append(update.content);
    fold.showing(tool, [update.content]);
  },
  terminal_update: (fold, update) => fold.terminal(update.terminalId).patch(update),
  terminal_output_chunk: (fold, update) => fold.terminal(update.terminalId).append(update.data),
  plan_update: (fold, update) => fold.setPlan(update),
  plan_removed: (fold, update) => fold.removePlan(update),
  compaction_update: (fold, update, at) => fold.compaction(update, at).patch(update),
  compaction_summary_chunk: (fold, update, at) => fold.compaction(update, at).append(update.content),
  available_commands_update: (fold, update) =>
    fold.set("commands", "commands", update.availableCommands ?? []),
  config_option_update: (fold, update) => fold.set("options", "options", update.configOptions ?? []),
  session_info_update: (fold, update) => fold.setInfo(update),
  usage_update: (fold, update) => fold.setUsage(update),
  subagent_update: (fold, update, at) => fold.subagent(update, at).patch(update),
  session_message: (fold, update, at) => fold.note(update, at).patch(update),
  session_message_chunk: (fold, update, at) => fold.note(update, at).append(update.content),
  notice: (fold, update, at) => fold.notice(update, at),
  state_update: (fold, update, at) => fold.state(update, at),
  state_change: (fold, update, at) => fold.state(update, at),
  _antiphon_queue: (fold, update) =>
    fold.set("queue", "queue", { entries: update.entries ?? [], paused: update.paused === true }),
  _antiphon_annotation: (fold, update) => fold.annotated(update, false),
  _antiphon_annotation_removed: (fold, update) => fold.annotated(update, true),
  _antiphon_presence: (fold, update) => fold.set("presence", "clients", update.clients ?? []),
};
