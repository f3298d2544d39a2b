// Annotations: reactions and notes of clients, each in the message that it is on.

const ROLES = new Set(["user", "agent", "thought"]);
const LONGEST = { reaction: 64, note: 4096 };

const cut = (text, limit) => (text.length <= limit ? text : [...text].slice(0, limit).join(""));

export class Annotations {
  #byId = new Map();

  /** Fold `_antiphon_annotation`; gives the message that it changed. `find` gives a message by role and id. */
  add(update, find) {
    const made = read(update);
    const message = made && find(made.role, made.messageId);
    if (!message) return null;
    const known = this.#byId.get(made.id);
    if (known && known.message !== message) return null;
    this.#byId.set(made.id, { message });
    message.annotations.set(made.id, made);
    message.version += 1;
    return message;
  }

  /** Fold `_antiphon_annotation_removed`; gives the message that it changed. */
  remove(update) {
    const known = this.#byId.get(update.annotationId);
    if (!known) return null;
    this.#byId.delete(update.annotationId);
    known.message.annotations.delete(update.annotationId);
    known.message.version += 1;
    return known.message;
  }
}

function read({ annotationId, messageId, role, kind, value, by, at }) {
  const whole = [annotationId, messageId, value, at].every((text) => typeof text === "string");
  if (!whole || !ROLES.has(role) || !Object.hasOwn(LONGEST, kind)) return null;
  if (typeof by?.clientId !== "string") return null;
  return { id: annotationId, messageId, role, kind, value: cut(value, LONGEST[kind]), by, at };
}
