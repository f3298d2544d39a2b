// Sending an earlier prompt again: as it was, or changed, in this session or in a fork from before it.

import { ours } from "../../fold/content.js";

/** The message before a prompt, after which a fork would begin without the prompt; null if there is none.
 * Pure. */
export function messageBefore(items, index) {
  for (let at = index - 1; at >= 0; at -= 1) {
    if (items[at].kind === "message" && items[at].role !== "thought") return items[at];
  }
  return null;
}

/** The last prompt before a place in the transcript; null if there is none. Pure. */
export function promptBefore(items, index) {
  for (let at = Math.min(index, items.length) - 1; at >= 0; at -= 1) {
    const item = items[at];
    if (item.kind === "message" && item.role === "user" && item.blocks.length) return item;
  }
  return null;
}

export class Resend {
  retryLabel = "Send this prompt again, as a new prompt in this session";
  #around;

  constructor(around) {
    this.#around = around;
  }

  get #app() { return this.#around.app; }
  get #session() { return this.#around.session; }

  /** Whether this user may prompt. */
  get may() {
    return this.#app.role !== "observer";
  }

  promptBefore(index) {
    return promptBefore(this.#session.items, index);
  }

  /** The message after which a changed prompt would fork the session; null if it would be a new prompt. */
  forkPoint(prompt) {
    const able = this.#session.agentForksAt && this.#app.begins && ours(this.#app.capabilities._meta).forkAt;
    return able ? messageBefore(this.#session.items, prompt.index) : null;
  }

  editLabel(prompt) {
    return this.forkPoint(prompt)
      ? "Edit and resend, in a fork of the session from before this prompt"
      : "Edit and resend, as a new prompt in this session";
  }

  retry(prompt) {
    return this.#around.attempt("The prompt was not sent again",
      this.#session.prompt(prompt.blocks.map((block) => ({ ...block }))));
  }

  /** Put a prompt into the composer. */
  edit(prompt) {
    const others = prompt.blocks.filter((block) => block.type !== "text");
    this.#app.emit("compose", { text: prompt.text, blocks: others,
      resends: { forkAt: this.forkPoint(prompt)?.id ?? null } });
  }
}
