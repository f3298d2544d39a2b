// Content that grows by chunks, and the one rule by which `_meta` is patched.

const isPlain = (block) => block.type === "text" && !block.annotations && !block._meta;

/** Blocks, of which the last one may be plain text that still grows: a string that is added to is a rope. */
export class Content {
  blocks = [];

  replace(blocks) {
    this.blocks = Array.isArray(blocks) ? blocks.map((block) => ({ ...block })) : [];
  }

  append(block) {
    if (!block || typeof block !== "object") return;
    const last = this.blocks.at(-1);
    if (last && isPlain(block) && isPlain(last)) last.text += block.text;
    else this.blocks.push({ ...block });
  }

  get text() {
    let text = "";
    for (const block of this.blocks) if (block.type === "text") text += block.text;
    return text;
  }
}

/** `current` after a patch: absent keeps, null clears, a key replaces, a null key removes (MSG-18). */
export function patchMeta(current, patch) {
  if (patch === undefined) return current;
  if (patch === null) return {};
  return Object.fromEntries(Object.entries({ ...current, ...patch }).filter(([, value]) => value !== null));
}

/** What is ours in a `_meta`. */
export function ours(meta) {
  const found = meta?.antiphon;
  return found && typeof found === "object" ? found : {};
}

/** Fields of a wire object: absent keeps, null resets. */
export function patchFields(target, update, resets) {
  for (const [name, reset] of Object.entries(resets)) {
    if (name in update && update[name] !== undefined) target[name] = update[name] ?? reset;
  }
}
