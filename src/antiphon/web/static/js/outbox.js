// What was asked and not answered yet. It is asked again over the next link, or by the page after a reload,
// under the same operation id: the hub does it once, however often it hears of it.

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
   * @param {(entry: object, error: Error|null) => void} settled told of each end; with an error where nobody
   *   waits for it, as before a reload
   */
  constructor(send, settled = () => {}) {
    this.#send = send;
    this.#settled = settled;
  }

  /** What another load of this page left. */
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

  /** Gives the answer, whenever that comes. */
  add(entry) {
    this.waiting.push(entry);
    this.#keep();
    const answered = new Promise((resolve, reject) => this.#settling.set(entry.id, { resolve, reject }));
    this.#deliver(entry);
    return answered;
  }

  /** There is a link again. */
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
      // a full or forbidden storage costs what a reload would have brought back
    }
  }
}
