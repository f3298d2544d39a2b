// The files that an @ in the prompt may mean. A chosen file becomes a link of the prompt, shown as a chip.

import { h, replace } from "../dom.js";
import { icon } from "../icons.js";
import { safeLine } from "../text_safety.js";

const PAUSE = 120;
const SHOWN = 8;
const LONGEST = 100;

/** The @ word before the cursor: {from, query}; null if there is none. Pure. */
export function mentionAt(text, cursor) {
  const found = /(?:^|[\s([{"'])@([^\s@]*)$/.exec(text.slice(Math.max(0, cursor - LONGEST), cursor));
  return found ? { from: cursor - found[1].length - 1, query: found[1] } : null;
}

/** The block of a file, and its chip. Pure. */
export function fileLink({ path, uri }) {
  const name = path.split("/").at(-1);
  return { name: safeLine(path, 120), size: 0, kind: "resource_link", block: { type: "resource_link", name, uri } };
}

export class MentionMenu {
  #shown = [];
  #at = 0;
  #mention = null;
  #dismissed = null;
  #timer = 0;
  #asked = 0;

  /** `find(query)` resolves to files, or is null where the hub has none; `choose` gets a file. */
  constructor(field, { find, choose }) {
    this.field = field;
    this.find = find;
    this.choose = choose;
    this.element = h("ul", { class: "slash mentions", id: "mentions", role: "listbox", "aria-label": "Files",
      hidden: true });
    field.addEventListener("blur", () => this.close());
  }

  get open() {
    return !this.element.hidden;
  }

  /** Look at the word before the cursor. */
  update() {
    const { value, selectionStart, selectionEnd } = this.field;
    const mention = selectionStart === selectionEnd ? mentionAt(value, selectionStart) : null;
    const wanted = mention && `${mention.from} ${mention.query}`;
    if (mention === null || this.#dismissed === mention.from) {
      if (mention === null) this.#dismissed = null;
      this.close();
      return;
    }
    if (this.#mention && wanted === `${this.#mention.from} ${this.#mention.query}`) return;
    this.#mention = mention;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(mention), PAUSE);
  }

  close() {
    clearTimeout(this.#timer);
    this.#asked += 1;
    this.#mention = null;
    this.#show([]);
  }

  async #ask(mention) {
    this.#asked += 1;
    const asked = this.#asked;
    const files = await this.find(mention.query).catch(() => []); // without files there is nothing to choose
    if (asked === this.#asked) this.#show(files.slice(0, SHOWN));
  }

  #show(files) {
    const open = files.length > 0;
    if (!open && !this.open) return;
    this.#shown = files;
    this.#at = 0;
    this.element.hidden = !open;
    replace(this.element, files.map((file, index) => this.#row(file, index)));
    if (open) this.field.setAttribute("aria-controls", "mentions");
    else this.field.setAttribute("aria-controls", "slash");
    this.#mark();
  }

  #row(file, index) {
    const at = file.path.lastIndexOf("/") + 1;
    const pick = (event) => {
      event.preventDefault();
      this.#take(file);
    };
    return h("li", { id: `mention-${index}`, role: "option", onpointerdown: pick },
      h("code", null, icon("file"), safeLine(file.path.slice(at), 80)),
      h("span", { class: "folder" }, safeLine(file.path.slice(0, Math.max(0, at - 1)), 160)));
  }

  #mark() {
    [...this.element.children].forEach((row, index) => {
      row.setAttribute("aria-selected", String(index === this.#at));
      if (index === this.#at && this.open) row.scrollIntoView({ block: "nearest" });
    });
    if (this.open) this.field.setAttribute("aria-activedescendant", `mention-${this.#at}`);
    else this.field.removeAttribute("aria-activedescendant");
  }

  /** The word becomes the path, and the file a part of the prompt. */
  #take(file) {
    const { from, query } = this.#mention;
    this.close();
    this.field.setRangeText(`@${file.path} `, from, from + 1 + query.length, "end");
    this.choose(file);
  }

  /** Handle a key while the menu is open. Returns whether it was handled. */
  take(event) {
    if (!this.open) return false;
    const { length } = this.#shown;
    if (event.key === "ArrowDown") this.#at = (this.#at + 1) % length;
    else if (event.key === "ArrowUp") this.#at = (this.#at + length - 1) % length;
    else if (event.key === "Escape") {
      this.#dismissed = this.#mention.from;
      this.close();
    } else if ((event.key === "Tab" || event.key === "Enter") && !event.shiftKey) {
      this.#take(this.#shown[this.#at]);
    } else return false;
    this.#mark();
    return true;
  }
}
