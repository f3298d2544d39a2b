// The line above the composer while an earlier prompt is changed: it says where the prompt will go.

import { h, replace } from "../dom.js";
import { icon, iconButton } from "../icons.js";

export class Resending {
  #forkAt = null;
  element = h("div", { class: "resending", role: "status", hidden: true });

  /** `left` is called when the user gives up. */
  constructor(left) {
    this.left = left;
  }

  get active() {
    return !this.element.hidden;
  }

  /** `forkAt`: the message after which a fork begins; null if the prompt is a new one of this session. */
  begin({ forkAt }) {
    this.#forkAt = forkAt;
    this.element.hidden = false;
    const stay = () => this.begin({ forkAt: null });
    replace(this.element, icon(forkAt ? "fork" : "edit"),
      h("span", null, forkAt
        ? "Sending this starts a fork of the session, from before the original prompt."
        : "Sending this adds a new prompt to this session."),
      forkAt ? h("button", { type: "button", class: "small", onclick: stay }, "Send it here instead") : null,
      iconButton("close", "Do not resend", () => this.left()));
  }

  end() {
    this.#forkAt = null;
    this.element.hidden = true;
  }

  /** The session that the prompt goes to: a fork, or the given one. */
  async target(app, session) {
    const target = this.#forkAt === null ? session : await app.fork(session.id, this.#forkAt);
    this.end();
    return target;
  }
}
