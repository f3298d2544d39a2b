// The command palette: all commands and sessions, found by their words.

import { availableCommands } from "../commands.js";
import { ask } from "../dialog.js";
import { h, on, replace, setText } from "../dom.js";
import { safeLine } from "../text_safety.js";
import { counted, shortPath } from "../words.js";
import { arranged } from "./sessions.js";
import { UNTITLED } from "./title.js";
import { tell } from "./toasts.js";

const SESSIONS = 8;

/** The entries whose title has every word of the search; those that begin with it come first. Pure. */
export function matchingEntries(entries, search) {
  const text = search.trim().toLowerCase();
  const words = text.split(/\s+/).filter(Boolean);
  const found = entries.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
  const rank = ({ title }) => (title.toLowerCase().startsWith(text) ? 0 : 1);
  return text ? found.sort((one, two) => rank(one) - rank(two)) : found;
}

function sessionEntries(app) {
  return arranged(app.sessions).map((entry) => ({
    id: `session-${entry.sessionId}`,
    title: safeLine(entry.title ?? "", 80) || UNTITLED,
    note: entry.cwd ? shortPath(entry.cwd) : null,
    run: () =>
      app.open(entry.sessionId).catch((error) => tell(app, "The session was not opened", error)),
  }));
}

export async function openPalette(app) {
  const chosen = await ask({ title: "Commands", body: (close) => new Palette(app, close).element });
  chosen?.run();
}

class Palette {
  #shown = [];
  #at = 0;

  constructor(app, close) {
    this.close = close;
    this.commands = availableCommands(app);
    this.sessions = sessionEntries(app);
    this.list = h("ul", { class: "palette-list", id: "palette-list", role: "listbox", "aria-label": "Commands" });
    this.count = h("p", { class: "only-read", role: "status" });
    this.field = h("input", {
      type: "search",
      role: "combobox",
      "aria-label": "Find a command or a session",
      "aria-controls": "palette-list",
      "aria-expanded": "true",
      "aria-autocomplete": "list",
      placeholder: "Find a command or a session",
      autocomplete: "off",
      spellcheck: "false",
      autofocus: true,
    });
    on(this.field, "input", () => this.#find());
    on(this.field, "keydown", (event) => this.#key(event));
    this.element = h("div", { class: "palette" }, this.field, this.list, this.count);
    this.#find();
  }

  #find() {
    const text = this.field.value;
    const sessions = text.trim() ? matchingEntries(this.sessions, text).slice(0, SESSIONS) : [];
    this.#shown = [...matchingEntries(this.commands, text), ...sessions];
    this.#at = 0;
    replace(this.list, this.#shown.map((entry, index) => this.#row(entry, index)));
    setText(this.count, counted(this.#shown.length, "result"));
    this.#mark();
  }

  #row(entry, index) {
    return h(
      "li",
      { role: "option", id: `palette-${index}`, onclick: () => this.close(entry) },
      h("span", null, entry.title),
      entry.note ? h("small", null, entry.note) : null,
      entry.keys ? h("kbd", { "aria-hidden": "true", title: "After Esc" }, entry.keys) : null,
    );
  }

  #mark() {
    [...this.list.children].forEach((row, index) => {
      row.setAttribute("aria-selected", String(index === this.#at));
      if (index === this.#at) row.scrollIntoView({ block: "nearest" });
    });
    if (this.#shown.length) this.field.setAttribute("aria-activedescendant", `palette-${this.#at}`);
    else this.field.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const { length } = this.#shown;
    if (event.isComposing) return;
    if (event.key === "ArrowDown" && length) this.#at = (this.#at + 1) % length;
    else if (event.key === "ArrowUp" && length) this.#at = (this.#at + length - 1) % length;
    else if (event.key === "Enter") {
      if (length) this.close(this.#shown[this.#at]);
    } else return;
    event.preventDefault();
    this.#mark();
  }
}
