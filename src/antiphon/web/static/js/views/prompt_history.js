// Earlier prompts of a session, walked by the arrow keys; what was being written is at the end. Pure.

export class PromptHistory {
  #at = null;
  #draft = "";

  /** The earlier one, or null where there is none. `texts` are the prompts, the oldest first. */
  back(texts, written) {
    if (this.#at === null) {
      this.#draft = written;
      this.#at = texts.length;
    }
    if (this.#at === 0) return null;
    this.#at -= 1;
    return texts[this.#at];
  }

  forward(texts) {
    if (this.#at === null) return null;
    this.#at += 1;
    if (this.#at < texts.length) return texts[this.#at];
    this.#at = null;
    return this.#draft;
  }

  get walking() {
    return this.#at !== null;
  }

  leave() {
    this.#at = null;
  }
}

/** What was prompted, each once, the latest last. Pure. */
export function promptsOf(items) {
  const texts = [];
  for (let at = items.length - 1; at >= 0 && texts.length < 100; at -= 1) {
    const item = items[at];
    if (item.kind !== "message" || item.role !== "user") continue;
    const text = item.text.trim();
    if (text && text.length <= 20_000 && !texts.includes(text)) texts.push(text);
  }
  return texts.reverse();
}
