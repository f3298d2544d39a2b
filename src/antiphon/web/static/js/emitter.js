// Who wants to know is told; one that fails to listen keeps nothing from the others.

export class Emitter {
  #listeners = new Map();

  /** Gives back what stops it. */
  on(kind, listener) {
    if (!this.#listeners.has(kind)) this.#listeners.set(kind, new Set());
    this.#listeners.get(kind).add(listener);
    return () => this.#listeners.get(kind).delete(listener);
  }

  emit(kind, detail) {
    for (const listener of [...(this.#listeners.get(kind) ?? [])]) {
      try {
        listener(detail);
      } catch (error) {
        reportError(error);
      }
    }
  }
}
