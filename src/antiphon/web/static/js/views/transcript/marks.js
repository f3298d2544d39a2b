// Entries between messages: notices, compactions, subagents and messages between sessions.

import { h, replace, setText } from "../../dom.js";
import { icon } from "../../icons.js";
import { safeLine, safeText } from "../../text_safety.js";
import { lasting } from "../../words.js";
import { stateMark } from "../state.js";
import { Blocks } from "./blocks.js";

/** A pulse while the turn runs, with its duration. */
export class WorkView {
  #time = h("span", { class: "facts" });

  constructor(item, around) {
    this.item = item;
    this.around = around;
    this.element = h("div", { class: "work", "aria-hidden": "true" },
      h("span", { class: "pulse" }), this.#time);
    const timer = setInterval(() => (this.element.isConnected ? this.update() : clearInterval(timer)), 1000);
  }

  update() {
    const { openedAt } = this.around.session.fold.turn;
    const gone = openedAt ? Date.now() - openedAt : 0;
    setText(this.#time, gone >= 3000 ? lasting(1000 * Math.floor(gone / 1000)).replace(".0", "") : "");
  }
}

export class NoticeView {
  constructor(item) {
    this.item = item;
    this.element = h("div", { class: ["notice-line", item.severity] });
  }

  update() {
    const { severity, title, description } = this.item;
    replace(this.element, icon(severity === "info" ? "info" : "warning"), h("div", null,
      h("p", null, safeLine(title ?? "", 300)),
      description ? h("p", { class: "why" }, safeText(String(description).slice(0, 4000))) : null));
  }
}

const COMPACTING = { in_progress: "Compacting the context", completed: "The agent compacted its context",
  failed: "The agent failed to compact its context", cancelled: "Compacting was cancelled" };

export class CompactionView {
  #blocks = new Blocks();
  #word = h("span");

  constructor(item, around) {
    this.item = item;
    this.details = h("details", { class: "compaction", open: around.opened(item.key) ?? false },
      h("summary", null, icon("archive"), this.#word), this.#blocks.element);
    this.details.addEventListener("toggle", () => around.remember(item.key, this.details.open));
    this.element = h("div", null, this.details);
  }

  open() {
    this.details.open = true;
  }

  update() {
    const { status, error, blocks } = this.item;
    const why = error ? `: ${safeLine(error, 200)}` : "";
    setText(this.#word, (COMPACTING[status] ?? COMPACTING.in_progress) + why);
    this.#blocks.set(blocks);
  }
}

export class SubagentView {
  constructor(item, around) {
    this.item = item;
    this.element = h("a", { class: "subagent", href: `#/s/${encodeURIComponent(item.id)}` });
    this.element.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      around.open(item.id);
    });
  }

  update() {
    const { title, description, state } = this.item;
    replace(this.element, icon("people"),
      h("span", { class: "title" }, safeLine(title || "A subagent", 200)),
      description ? h("span", { class: "where" }, safeLine(description, 200)) : null,
      state?.state ? stateMark(state.state) : null, icon("unfold"));
  }
}

export class NoteView {
  #blocks = new Blocks();
  #head = h("header", { class: "who" });

  constructor(item, around) {
    this.item = item;
    this.around = around;
    this.element = h("article", { class: "message note-between", "aria-label": "A message between sessions" },
      this.#head, this.#blocks.element);
  }

  update() {
    const { senderSessionId, recipientSessionId } = this.item;
    const toUs = recipientSessionId === this.around.session.id;
    const other = toUs ? senderSessionId : recipientSessionId;
    const open = () => this.around.open(other);
    const words = toUs ? "From another session" : "To another session";
    replace(this.#head, icon("move"), h("span", { class: "name" }, words),
      other ? h("button", { type: "button", class: "small", onclick: open }, "Open that session") : null);
    this.#blocks.set(this.item.blocks);
  }
}
