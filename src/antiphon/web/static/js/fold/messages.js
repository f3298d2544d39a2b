// Messages: user, agent and thought, by role and id (MSG-08). Each stays where it first appeared (MSG-22).

import { Content, ours, patchMeta } from "./content.js";

export class Message {
  kind = "message";
  version = 0;
  /** Whether nothing more of it is expected. */
  complete = false;
  meta = {};
  /** Reactions and notes of clients, by their ids, the oldest first. */
  annotations = new Map();
  #content = new Content();

  constructor(role, id, at) {
    this.role = role;
    this.id = id;
    this.key = `message/${role}/${id}`;
    this.at = at;
  }

  get blocks() {
    return this.#content.blocks;
  }

  get text() {
    return this.#content.text;
  }

  /** The client whose prompt it was, where that is told. */
  get sender() {
    const sender = ours(this.meta).sender;
    return sender && typeof sender.clientId === "string" ? sender : null;
  }

  /** Whether the agent has deleted it. What comes later for the same id makes it a message again. */
  get deleted() {
    return ours(this.meta).deleted === true && this.blocks.length === 0;
  }

  /** The id of the message that it answers or was triggered by, where the agent names one. */
  get about() {
    const id = ours(this.meta).about?.messageId;
    return typeof id === "string" ? id : null;
  }

  append(block) {
    this.#content.append(block);
    if (this.blocks.length) this.meta = withoutDeleted(this.meta);
    this.version += 1;
  }

  patch(update) {
    if (update.content !== undefined) {
      this.#content.replace(update.content); // MSG-13
      this.meta = withoutDeleted(this.meta); // unless this update deletes it, too
    }
    this.meta = patchMeta(this.meta, update._meta);
    if (this.blocks.length) this.meta = withoutDeleted(this.meta);
    this.version += 1;
  }
}

/** A `_meta` that does not say that its message was deleted. */
function withoutDeleted(meta) {
  if (ours(meta).deleted !== true) return meta;
  const { antiphon, ...others } = meta;
  const kept = Object.fromEntries(Object.entries(antiphon).filter(([key]) => key !== "deleted"));
  return Object.keys(kept).length ? { ...others, antiphon: kept } : others;
}

/** A message from one session to another; who takes part may be told later (SUB-03). */
export class Note {
  kind = "note";
  version = 0;
  senderSessionId = null;
  recipientSessionId = null;
  senderMessageId = null;
  recipientMessageId = null;
  meta = {};
  #content = new Content();

  constructor(id, at) {
    this.id = id;
    this.key = `session_message/${id}`;
    this.at = at;
  }

  get blocks() {
    return this.#content.blocks;
  }

  get text() {
    return this.#content.text;
  }

  append(block) {
    this.#content.append(block);
    this.version += 1;
  }

  patch(update) {
    for (const name of ["senderSessionId", "recipientSessionId", "senderMessageId", "recipientMessageId"]) {
      if (update[name] !== undefined) this[name] = update[name];
    }
    if (update.content !== undefined) this.#content.replace(update.content);
    this.meta = patchMeta(this.meta, update._meta);
    this.version += 1;
  }
}

/** A compaction of the agent's context, at the place of its first report (COMP-03). */
export class Compaction {
  kind = "compaction";
  version = 0;
  status = "in_progress";
  error = null;
  meta = {};
  #summary = new Content();

  constructor(id, at) {
    this.id = id;
    this.key = `compaction/${id}`;
    this.at = at;
  }

  get blocks() {
    return this.#summary.blocks;
  }

  get text() {
    return this.#summary.text;
  }

  append(block) {
    this.#summary.append(block);
    this.version += 1;
  }

  patch(update) {
    this.status = update.status;
    if (update.summary !== undefined) this.#summary.replace(update.summary);
    if (update.error !== undefined) this.error = update.error;
    this.meta = patchMeta(this.meta, update._meta);
    this.version += 1;
  }
}
