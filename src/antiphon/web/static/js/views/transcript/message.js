// Prompts with their senders, messages of the agent, and folded thoughts.

import { h, replace, setLabel, setText } from "../../dom.js";
import { icon, iconButton } from "../../icons.js";
import { safeLine } from "../../text_safety.js";
import { initials } from "../../words.js";
import { Blocks } from "./blocks.js";
import { copyButton } from "./copy_button.js";
import { Reactions } from "./reactions.js";

/** Prompts with more letters or lines are folded. */
const LONG_TEXT = 2400;
const LONG_LINES = 24;

/** Whether a prompt is folded at first. Pure. */
export function isLong(text) {
  return text.length > LONG_TEXT || text.split("\n", LONG_LINES + 1).length > LONG_LINES;
}

/** Shown in place of a deleted message. */
const DELETED = "Message deleted";

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });

export class MessageView {
  #blocks = new Blocks();
  #who = h("header", { class: "who" });
  #said = null;
  #fold = h("button", { type: "button", class: "quiet fold-prompt", hidden: true, onclick: () => {
    this.around.remember(this.item.key, !(this.around.opened(this.item.key) ?? false));
    this.#foldLong();
  } });
  #deleted = h("p", { class: "deleted", hidden: true }, DELETED);

  constructor(item, around) {
    this.item = item;
    this.reactions = new Reactions(item, around);
    const { id, role } = item;
    const fork = iconButton("fork", "Fork from here", () => around.fork(id));
    const acts = h("footer", { class: "acts" }, copyButton(() => item.text, "Copy the message"),
      this.reactions.button(), role === "user" ? resending(item, around) : null,
      around.app.begins ? fork : null);
    const label = role === "user" ? "Prompt" : "Answer";
    this.element = h("article", { class: ["message", role], "aria-label": label },
      role === "user" ? this.#who : null, this.#blocks.element, this.#fold, this.#deleted, this.reactions.element,
      acts);
    this.around = around;
  }

  open() {
    if (this.item.role === "user") this.around.remember(this.item.key, true);
    this.update();
  }

  /** Fold a long prompt, unless the user has opened it. */
  #foldLong() {
    const long = isLong(this.item.text);
    const open = this.around.opened(this.item.key) ?? false;
    this.#fold.hidden = !long;
    this.element.classList.toggle("folded", long && !open);
    this.#fold.setAttribute("aria-expanded", String(open));
    setText(this.#fold, open ? "Show less" : "Show all");
  }

  update() {
    this.#blocks.set(this.item.blocks);
    this.#deleted.hidden = !this.item.deleted;
    this.reactions.update();
    this.element.classList.toggle("streaming", !this.item.complete);
    if (this.item.role === "user") {
      this.#sign();
      this.#foldLong();
    }
  }

  #sign() {
    const { sender, at } = this.item;
    const you = sender?.clientId === this.around.app.me.clientId;
    const name = sender ? safeLine(sender.name, 64) : "";
    const said = `${name} ${you} ${at}`;
    if (said === this.#said) return;
    this.#said = said;
    this.element.classList.toggle("mine", you);
    const face = { class: ["face", you && "you"], "aria-hidden": "true" };
    replace(this.#who,
      sender ? h("span", face, initials(sender.name)) : null,
      h("span", { class: "name" }, name || "Prompt", you ? h("span", { class: "you-mark" }, " you") : null),
      at ? h("time", { datetime: new Date(at).toISOString() }, CLOCK.format(at)) : null);
  }
}

/** Buttons that send a prompt again; their labels say where it goes. */
function resending(item, { resend }) {
  if (!resend.may) return null;
  const edit = iconButton("edit", "Edit and resend", () => resend.edit(item));
  const say = () => setLabel(edit, "title", resend.editLabel(item));
  edit.addEventListener("pointerenter", say);
  edit.addEventListener("focus", say);
  return [iconButton("retry", "Retry", () => resend.retry(item), { title: resend.retryLabel }), edit];
}

export class ThoughtView {
  #blocks = new Blocks();
  #gist = h("span", { class: "gist" });
  #word = h("span", { class: "word" });
  #drawn = -1;

  constructor(item, around) {
    this.item = item;
    const open = around.opened(item.key) ?? false;
    this.details = h("details", { class: "thought", open },
      h("summary", null, icon("think"), this.#word, this.#gist, icon("unfold")), this.#blocks.element);
    this.details.addEventListener("toggle", () => {
      around.remember(item.key, this.details.open);
      this.update();
    });
    this.reactions = new Reactions(item, around);
    this.element = h("article", { class: "message thinking", "aria-label": "Thought" }, this.details,
      this.reactions.element);
  }

  open() {
    this.details.open = true;
    this.update();
  }

  update() {
    const { item } = this;
    setText(this.#word, item.complete ? "Thought" : "Thinking");
    this.element.classList.toggle("streaming", !item.complete);
    const text = item.deleted ? DELETED : item.text;
    this.reactions.update();
    setText(this.#gist, safeLine(text.slice(0, 240).replace(/[*_`#>]+/g, ""), 120));
    if (!this.details.open || this.#drawn === item.version) return;
    this.#drawn = item.version;
    this.#blocks.set(item.blocks);
  }
}

/** A prompt that the hub has not confirmed yet. */
export class UnsentView {
  #blocks = new Blocks();
  #word = h("span", { class: "name" });

  constructor(item, around) {
    this.item = item;
    this.around = around;
    this.element = h("article", { class: "message user mine unsent", "aria-label": "Prompt, not sent yet" },
      h("header", { class: "who" }, icon("clock"), this.#word), this.#blocks.element);
  }

  update() {
    const { link, session } = this.around.app;
    const sending = session?.starting ? "Waiting for the agent" : "Sending";
    setText(this.#word, link.state === "online" ? sending : "Waiting for the connection to the hub");
    this.#blocks.set(this.item.blocks);
  }
}
