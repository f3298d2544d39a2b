// Tool calls and subagents: patched by id, `null` resets, content chunks append.

import { patchFields, patchMeta } from "./content.js";

const FINAL = new Set(["completed", "failed", "cancelled"]); // TOOL-V2-08

export class Tool {
  kind = "tool";
  version = 0;
  name = null;
  title = null;
  toolKind = "other";
  status = "pending";
  content = [];
  locations = [];
  rawInput = null;
  rawOutput = null;
  capabilities = null;
  meta = {};

  constructor(id, at) {
    this.id = id;
    this.key = `tool/${id}`;
    this.at = at;
  }

  /** An unknown status is still in progress (TOOL-V2-07). */
  get final() {
    return FINAL.has(this.status);
  }

  patch(update) {
    patchFields(this, update, {
      name: null, title: null, status: "pending", rawInput: null, rawOutput: null, capabilities: null,
    }); // TOOL-V2-02
    if (update.kind !== undefined) this.toolKind = update.kind ?? "other";
    if (update.content !== undefined) this.content = [...(update.content ?? [])];
    if (update.locations !== undefined) this.locations = [...(update.locations ?? [])];
    this.meta = patchMeta(this.meta, update._meta);
    this.version += 1;
  }

  append(part) {
    this.content.push(part); // parts stay apart: a chunk is one of them (TOOL-V2-05)
    this.version += 1;
  }

  /** What a question says of its call. It may be older than what came since, so nothing is taken back. */
  hear(call) {
    const { status, content, ...rest } = call;
    const news = { ...rest };
    if (this.status === "pending" && status) news.status = status;
    if (!this.content.length && content) news.content = content;
    this.patch(news);
  }
}

export class Subagent {
  kind = "subagent";
  version = 0;
  title = null;
  description = null;
  capabilities = null;
  state = null;
  cwd = null;
  additionalDirectories = null;
  meta = {};

  constructor(id, at) {
    this.id = id;
    this.key = `subagent/${id}`;
    this.at = at;
  }

  patch(update) {
    patchFields(this, update, {
      title: null, description: null, capabilities: null, state: null, cwd: null, additionalDirectories: null,
    });
    this.meta = patchMeta(this.meta, update._meta);
    this.version += 1;
  }
}
