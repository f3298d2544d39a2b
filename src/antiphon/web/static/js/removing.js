// Sessions that are deleted in a moment. Until then the page hides them, and the user can undo that: the hub is
// asked only when the time is over or the page is left, so an undo gives back everything, also a running turn.

export const UNDO = 10_000;

export class Removals {
  #app;
  #timers = new Map();

  constructor(app) {
    this.#app = app;
    addEventListener("pagehide", () => this.#all());
  }

  /** Whether a session is hidden, because it is about to be deleted. */
  has(sessionId) {
    return this.#timers.has(sessionId);
  }

  /** Hide a session, and delete it after a while. `failed(error)` is called if the hub refuses. */
  add(sessionId, failed) {
    if (this.has(sessionId)) return;
    const remove = () => this.#remove(sessionId).catch(failed);
    this.#timers.set(sessionId, { timer: setTimeout(remove, UNDO), remove });
    this.#app.hide(sessionId);
  }

  async undo(sessionId) {
    clearTimeout(this.#timers.get(sessionId)?.timer);
    this.#timers.delete(sessionId);
    await this.#app.relist();
  }

  async #remove(sessionId) {
    try {
      await this.#app.call("session/delete", { sessionId });
    } catch (error) {
      await this.undo(sessionId).catch(() => {}); // the next list has it
      throw error;
    }
    this.#timers.delete(sessionId);
  }

  /** Delete at once what waits, because the page is left. */
  #all() {
    for (const { timer, remove } of this.#timers.values()) {
      clearTimeout(timer);
      remove();
    }
  }
}
