// The menu of the agent's commands, for a prompt that begins with a slash.

import { h, replace } from "../dom.js";
import { safeLine } from "../text_safety.js";

const SHOWN = 60;

/** The commands that match a text: first by the beginning of the name, then by any part. Pure. */
export function matching(commands, text) {
  const begun = /^\/(\S*)$/.exec(text);
  if (begun === null) return [];
  const word = begun[1].toLowerCase();
  const first = commands.filter((command) => command.name.toLowerCase().startsWith(word));
  const inside = commands.filter(
    (command) => !first.includes(command) && command.name.toLowerCase().includes(word),
  );
  return [...first, ...inside].slice(0, SHOWN);
}

/** The command at the beginning of a text, or null. Pure. */
export function called(commands, text) {
  const name = /^\/(\S+)(\s|$)/.exec(text)?.[1];
  return commands.find((command) => command.name === name) ?? null;
}

export class SlashMenu {
  #shown = [];
  #at = 0;
  #dismissed = null;

  constructor(field, choose) {
    this.field = field;
    this.choose = choose;
    this.element = h("ul", {
      class: "slash",
      id: "slash",
      role: "listbox",
      "aria-label": "Commands",
      hidden: true,
    });
    field.setAttribute("aria-controls", "slash");
    field.setAttribute("aria-autocomplete", "list");
  }

  get open() {
    return !this.element.hidden;
  }

  update(commands) {
    const text = this.field.value;
    if (text !== this.#dismissed) this.#dismissed = null;
    const before = this.#shown[this.#at]?.name;
    this.#shown = this.#dismissed === null ? matching(commands, text) : [];
    this.#at = Math.max(
      0,
      this.#shown.findIndex((command) => command.name === before),
    );
    if (called(commands, text)?.name === text.slice(1)) this.#at = 0;
    this.element.hidden = this.#shown.length === 0;
    replace(
      this.element,
      this.#shown.map((command, index) => this.#row(command, index)),
    );
    this.#mark();
  }

  #row(command, index) {
    return h(
      "li",
      {
        id: `slash-${index}`,
        role: "option",
        onpointerdown: (event) => {
          event.preventDefault();
          this.choose(command);
        },
      },
      h(
        "code",
        null,
        `/${safeLine(command.name, 60)}`,
        command.input?.hint ? h("i", null, safeLine(command.input.hint, 40)) : null,
      ),
      h("span", null, safeLine(command.description ?? "", 160)),
    );
  }

  #mark() {
    [...this.element.children].forEach((row, index) => {
      row.setAttribute("aria-selected", String(index === this.#at));
      if (index === this.#at && this.open) row.scrollIntoView({ block: "nearest" });
    });
    if (this.open) this.field.setAttribute("aria-activedescendant", `slash-${this.#at}`);
    else this.field.removeAttribute("aria-activedescendant");
  }

  /** Handle a key while the menu is open. Returns whether it was handled. */
  take(event) {
    if (!this.open) return false;
    const { length } = this.#shown;
    const chosen = this.#shown[this.#at];
    if (event.key === "ArrowDown") this.#at = (this.#at + 1) % length;
    else if (event.key === "ArrowUp") this.#at = (this.#at + length - 1) % length;
    else if (event.key === "Escape") {
      this.#dismissed = this.field.value;
      this.update([]);
    } else if (event.key === "Tab" && !event.shiftKey) this.choose(chosen);
    // A complete name is sent, not completed again.
    else if (event.key === "Enter" && !event.shiftKey && this.field.value !== `/${chosen.name}`)
      this.choose(chosen);
    else return false;
    this.#mark();
    return true;
  }
}
