// Reactions and notes on a message, with the users who gave them, and a way to add one.

import { ask } from "../../dialog.js";
import { h, replace } from "../../dom.js";
import { iconButton } from "../../icons.js";
import { safeLine, safeText } from "../../text_safety.js";

const SIGNS = ["👍", "👎", "❤️", "🎉", "👀", "❓"];
const NAMED = 3;

export class Reactions {
  #item;
  #around;
  #shown = h("div", { class: "given" });
  #picker = h("div", { class: "picker", role: "group", "aria-label": "Choose a reaction", hidden: true });
  element = h("section", { class: "reactions", "aria-label": "Reactions", hidden: true },
    this.#shown, this.#picker);

  constructor(item, around) {
    this.#item = item;
    this.#around = around;
  }

  /** Whether this client may react. */
  get #may() {
    const { role, offers } = this.#around.app;
    return role !== "observer" && offers.annotations === true;
  }

  /** The button that opens the choice; `null` where this client may not react. */
  button() {
    if (!this.#may) return null;
    return iconButton("react", "React", () => this.#choose());
  }

  update() {
    const all = [...this.#item.annotations.values()];
    const signs = new Map();
    for (const each of all) {
      if (each.kind !== "reaction") continue;
      const same = signs.get(each.value) ?? [];
      signs.set(each.value, [...same, each]);
    }
    replace(this.#shown, [...signs].map(([value, given]) => this.#sign(value, given)),
      all.filter(({ kind }) => kind === "note").map((note) => this.#note(note)));
    this.#reveal();
  }

  #reveal() {
    this.element.hidden = !this.#item.annotations.size && this.#picker.hidden;
  }

  #sign(value, given) {
    const mine = given.find(({ by }) => this.#isMe(by));
    const names = given.map(({ by }) => this.#name(by));
    const more = names.length > NAMED ? ` +${names.length - NAMED}` : "";
    const words = `${safeLine(value, 64)} by ${names.join(", ")}`;
    const props = { class: ["reaction", mine && "mine"], title: words };
    const inner = [h("span", { class: "sign" }, safeLine(value, 64)),
      h("span", { class: "by" }, names.slice(0, NAMED).join(", ") + more)];
    if (!this.#may) return h("span", props, ...inner);
    const act = () => (mine ? this.#around.unannotate(mine.id) : this.#give("reaction", value));
    return h("button", { ...props, type: "button", "aria-pressed": String(Boolean(mine)), "aria-label": words,
      onclick: act }, ...inner);
  }

  #note(note) {
    const remove = this.#may && this.#isMe(note.by)
      ? iconButton("close", "Remove the note", () => this.#around.unannotate(note.id))
      : null;
    return h("p", { class: "noted" }, h("span", { class: "by" }, this.#name(note.by)), safeText(note.value),
      remove);
  }

  #choose() {
    this.#picker.hidden = !this.#picker.hidden;
    if (!this.#picker.hidden && !this.#picker.childElementCount) {
      replace(this.#picker,
        SIGNS.map((sign) => h("button", { type: "button", class: "quiet", "aria-label": `React with ${sign}`,
          onclick: () => this.#give("reaction", sign) }, sign)),
        h("button", { type: "button", class: "quiet", onclick: () => this.#write() }, "Note"));
    }
    this.#reveal();
    this.#picker.querySelector("button")?.focus();
  }

  #give(kind, value) {
    this.#picker.hidden = true;
    this.#reveal();
    this.#around.annotate(this.#item, kind, value);
  }

  async #write() {
    const field = h("textarea", { id: "note-text", rows: 4, maxlength: 4096, required: true });
    const text = await ask({
      title: "Note on this message",
      body: (close) => h("form", { method: "dialog", onsubmit: (event) => {
        event.preventDefault();
        close(field.value.trim() || null);
      } }, h("label", { for: "note-text" }, "Note"), field,
      h("footer", null, h("button", { type: "button", onclick: () => close() }, "Cancel"),
        h("button", { type: "submit", class: "primary" }, "Add"))),
    });
    if (text) this.#give("note", text);
  }

  #isMe(by) {
    return by.clientId === this.#around.app.me.clientId;
  }

  #name(by) {
    return this.#isMe(by) ? "you" : safeLine(by.name ?? "", 64) || "unknown";
  }
}
