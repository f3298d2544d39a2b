// Requests without an answer. They are sent again after a reconnect or a reload with the same operation id, so
// that the hub handles each once.

import { LinkLost } from "./rpc.js";

const KEY = "antiphon.outbox";
const MOST = 1_000_000;

export class Outbox {
  /** @type {{id: string, method: string, params: object, sessionId: string}[]} */
  waiting = [];
  #send;
  #settled;
  #settling = new Map();
  #underWay = new Set();

  /**
   * @param {(method: string, params: object) => Promise<any>} send which fails with LinkLost
   * @param {(entry: object, error: Error|null) => void} settled called at each end; with an error only if no
   *   caller waits for it, as after a reload
   */
  constructor(send, settled = () => {}) {
    this.#send = send;
    this.#settled = settled;
  }

  /** Restore the requests of the page before a reload. */
  restore() {
    try {
      this.waiting = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    } catch {
      this.waiting = [];
    }
  }

  of(sessionId) {
    return this.waiting.filter((entry) => entry.sessionId === sessionId);
  }

  /** Send a request. Resolves to the answer, also after a reconnect. */
  add(entry) {
    this.waiting.push(entry);
    this.#keep();
    const answered = new Promise((resolve, reject) => this.#settling.set(entry.id, { resolve, reject }));
    this.#deliver(entry);
    return answered;
  }

  /** Send all requests again, after a reconnect. */
  flush() {
    for (const entry of this.waiting) this.#deliver(entry);
  }

  async #deliver(entry) {
    if (this.#underWay.has(entry.id)) return;
    this.#underWay.add(entry.id);
    try {
      const answer = await this.#send(entry.method, entry.params);
      this.#settle(entry, "resolve", answer);
    } catch (error) {
      if (!(error instanceof LinkLost)) this.#settle(entry, "reject", error);
    } finally {
      this.#underWay.delete(entry.id);
    }
  }

  #settle(entry, how, value) {
    this.waiting = this.waiting.filter((other) => other !== entry);
    this.#keep();
    const waiting = this.#settling.get(entry.id);
    this.#settling.delete(entry.id);
    waiting?.[how](value);
    this.#settled(entry, how === "reject" && !waiting ? value : null);
  }

  #keep() {
    const kept = JSON.stringify(this.waiting);
    try {
      if (!this.waiting.length) sessionStorage.removeItem(KEY);
      else if (kept.length < MOST) sessionStorage.setItem(KEY, kept);
    } catch {
      // without storage, a reload loses the requests
    }
  }
}
