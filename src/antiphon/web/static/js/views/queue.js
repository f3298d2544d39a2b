// The queued prompts. They can be changed, moved or withdrawn until the agent has them.

import { h, on, replace, setText } from "../dom.js";
import { follow } from "../follow.js";
import { icon, iconButton } from "../icons.js";
import { safeLine, safeText } from "../text_safety.js";
import { counted } from "../words.js";
import { tell } from "./toasts.js";

const CUT = 600;

/** The text of content blocks, and the other blocks. Pure. */
export function wordsOf(blocks) {
  const list = Array.isArray(blocks) ? blocks : [];
  const text = list
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("\n");
  return { text, others: list.filter((block) => block.type !== "text") };
}

/** The entry before which a moved entry goes; null for the end, undefined if it cannot move. Pure. */
export function placeFor(entries, id, step) {
  const at = entries.findIndex((entry) => entry.messageId === id);
  const to = at + step;
  if (at < 0 || to < 0 || to >= entries.length) return undefined;
  return step < 0 ? entries[to].messageId : (entries[to + 1]?.messageId ?? null);
}

export function mount(app, element) {
  const heading = h("h2", null);
  const resume = h(
    "button",
    {
      type: "button",
      class: "quiet resume",
      onclick: () => act("The queue was not resumed", (session) => session.resumeQueue()),
    },
    icon("resume"),
    "Resume",
  );
  const head = h("header", { class: "queue-head" }, heading, resume);
  const list = h("ol", { class: "cards" });
  const cards = new Map();
  let shown = null;

  const act = async (failed, run) => {
    try {
      await run(app.session);
    } catch (error) {
      tell(app, failed, error);
    }
  };

  follow(app, ["queue", "state"], (session) => {
    if (session !== shown) {
      cards.clear();
      replace(list);
      shown = session;
    }
    const { entries, paused } = session?.queue ?? { entries: [], paused: false };
    element.hidden = entries.length === 0;
    const looking = app.role === "observer";
    setText(heading, paused ? `${counted(entries.length, "prompt")} paused` : `${entries.length} queued`);
    resume.hidden = !paused || looking;
    element.classList.toggle("paused", paused);
    const ids = new Set(entries.map((entry) => entry.messageId));
    for (const [id, card] of cards) {
      if (ids.has(id)) continue;
      card.element.remove();
      cards.delete(id);
    }
    entries.forEach((entry, index) => {
      if (!cards.has(entry.messageId)) cards.set(entry.messageId, new Card(app, entry.messageId, act));
      const card = cards.get(entry.messageId);
      card.show(entry, index, entries.length, looking);
      if (list.children[index] !== card.element) place(list, card.element, index);
    });
  });
  replace(element, head, list);
}

/** Move a card and keep the focus in it. */
function place(list, card, index) {
  const focused = card.contains(document.activeElement) ? document.activeElement : null;
  list.insertBefore(card, list.children[index] ?? null);
  focused?.focus();
}

class Card {
  #entry = null;
  #editing = false;

  constructor(app, id, act) {
    this.app = app;
    this.id = id;
    this.act = act;
    this.body = h("div", { class: "card-text" });
    this.sender = h("span", { class: "card-sender" });
    this.up = iconButton("up", "Move up", () => this.#move(-1));
    this.down = iconButton("down", "Move down", () => this.#move(1));
    this.edit = iconButton("edit", "Edit", () => this.#edit());
    this.withdraw = iconButton("close", "Withdraw", () => this.#withdraw());
    this.tools = h("div", { class: "card-tools" }, this.up, this.down, this.edit, this.withdraw);
    this.element = h(
      "li",
      { class: "card", tabindex: "-1" },
      h("div", { class: "card-main" }, this.sender, this.body),
      this.tools,
    );
    on(this.element, "keydown", (event) => {
      if (this.#editing || !event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
      event.preventDefault();
      this.#move(event.key === "ArrowUp" ? -1 : 1);
    });
  }

  show(entry, index, count, looking) {
    this.#entry = entry;
    const { text, others } = wordsOf(entry.content);
    const name = safeLine(entry.sender?.name ?? "", 64);
    const mine = entry.sender?.clientId !== undefined && entry.sender.clientId === this.app.me.clientId;
    const mode = entry.mode === "steer" ? "steers" : null;
    setText(this.sender, [`${index + 1}`, mine ? "You" : name || "Another user", mode]
      .filter(Boolean)
      .join(" · "));
    const drawn = JSON.stringify([text, others.length]);
    if (!this.#editing && this.body.dataset.drawn !== drawn) {
      this.body.dataset.drawn = drawn;
      const cut = text.length > CUT ? `${text.slice(0, CUT)}…` : text;
      replace(
        this.body,
        safeText(cut),
        others.length
          ? h("small", null, `${text ? " " : ""}with ${counted(others.length, "attachment")}`)
          : null,
      );
    }
    this.tools.hidden = looking;
    this.up.disabled = index === 0;
    this.down.disabled = index === count - 1;
    this.up.hidden = this.down.hidden = count === 1;
  }

  #move(step) {
    const before = placeFor(this.app.session.queue.entries, this.id, step);
    if (before !== undefined)
      this.act("The prompt was not moved", (session) => session.moveQueued(this.id, before));
  }

  async #withdraw() {
    const next = this.element.nextElementSibling ?? this.element.previousElementSibling;
    await this.act("The prompt was not withdrawn", (session) => session.withdraw(this.id));
    (
      next?.querySelector("button:not([hidden]):not([disabled])") ?? document.getElementById("prompt")
    )?.focus();
  }

  #edit() {
    const { text, others } = wordsOf(this.#entry.content);
    this.#editing = true;
    const field = h("textarea", { "aria-label": "Queued prompt", value: text });
    const done = (save) => {
      if (!this.#editing) return;
      this.#editing = false;
      delete this.body.dataset.drawn;
      this.element.classList.remove("editing");
      const changed = field.value.trim();
      if (save && (changed || others.length) && changed !== text) {
        const blocks = [...(changed ? [{ type: "text", text: changed }] : []), ...others];
        this.#entry = { ...this.#entry, content: blocks };
        this.act("The prompt was not changed", (session) => session.replaceQueued(this.id, blocks));
      }
      this.show(this.#entry, ...this.#position(), false);
      this.edit.focus();
    };
    on(field, "keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
        event.preventDefault();
        event.stopPropagation();
        done(event.key === "Enter");
      }
    });
    this.element.classList.add("editing");
    replace(
      this.body,
      field,
      h(
        "div",
        { class: "card-acts" },
        h("button", { type: "button", onclick: () => done(false) }, "Cancel"),
        h("button", { type: "button", class: "primary", onclick: () => done(true) }, "Save"),
      ),
    );
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }

  #position() {
    const { entries } = this.app.session.queue;
    return [entries.findIndex((entry) => entry.messageId === this.id), entries.length];
  }
}
