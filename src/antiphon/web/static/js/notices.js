// The notices of this page: what its toasts said, for as long as the page is open.

import { Emitter } from "./emitter.js";

const KEPT = 100;

export class Notices extends Emitter {
  /** The latest first: `{at, kind, title, message, more, unread}`. */
  all = [];

  constructor(app) {
    super();
    app.on("error", (said) => this.#add({ kind: "bad", ...said }));
    app.on("told", (said) => this.#add({ kind: "news", ...said }));
  }

  /** Errors that nobody has looked at in the list. */
  get unread() {
    return this.all.filter((each) => each.unread).length;
  }

  read() {
    for (const each of this.all) each.unread = false;
    this.emit("changed");
  }

  clear() {
    this.all = [];
    this.emit("changed");
  }

  #add({ kind, title, message = "", more = null }) {
    const notice = { at: Date.now(), kind, title, message, more, unread: kind === "bad" };
    this.all = [notice, ...this.all].slice(0, KEPT);
    this.emit("changed");
  }
}
