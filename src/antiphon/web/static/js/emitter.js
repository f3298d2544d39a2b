// Events with listeners. A listener that throws does not affect the others.

export class Emitter {
  #listeners = new Map();

  /** Add a listener. Returns a function that removes it. */
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
