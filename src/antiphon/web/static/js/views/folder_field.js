// The field for a folder of the hub's machine: recent folders, completion while typing, and a check.

import { h, on, replace, setText } from "../dom.js";
import { completions, foldersOf, problemOf, recentOnes, splitPath } from "../folders.js";
import { safeLine } from "../text_safety.js";

const SHOWN = 40;
const PAUSE = 120;

export class FolderField {
  #options = [];
  #at = -1;
  #serial = 0;
  #timer = 0;
  /** The absolute path of the folder in the field, once the hub has said that an agent can work there. */
  checked = null;
  /** Whether the user has chosen the folder. */
  touched = false;

  constructor(app, { id }) {
    this.app = app;
    this.list = h("ul", { class: "folder-list", id: `${id}-list`, role: "listbox", "aria-label": "Folders", hidden: true });
    this.field = h("input", {
      id,
      class: "folder",
      role: "combobox",
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      "aria-label": "Folder",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": `${id}-list`,
      "aria-describedby": `${id}-problem`,
      title: "The folder on the hub's machine in which the agent works",
    });
    this.problem = h("p", { class: "problem", id: `${id}-problem`, role: "alert", hidden: true });
    on(this.field, "focus", () => this.#suggest());
    on(this.field, "input", () => {
      this.#complain(null);
      this.checked = null;
      this.touched = true;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#suggest(), PAUSE);
    });
    on(this.field, "blur", () => {
      this.#close();
      if (this.value) this.check();
    });
    on(this.field, "keydown", (event) => this.#key(event));
  }

  get value() {
    return this.field.value.trim();
  }

  set value(path) {
    this.field.value = path;
    this.checked = null;
    this.#complain(null);
  }

  /** Show the folder in which the hub was started, which it knows. */
  offer(path) {
    this.value = path;
    this.checked = path;
    this.touched = false;
  }

  /** Ask the hub about the folder. Resolves to its absolute path, or null if no agent can work there. */
  async check() {
    const given = this.value;
    if (this.app.offers.listFolders === undefined) return given || "/";
    let answer;
    try {
      answer = await this.app.call("_antiphon/list_folders", { path: given });
    } catch {
      return given || "/"; // the hub says more when the session begins
    }
    const path = answer.state === "ok" ? answer.path : null;
    if (given !== this.value) return path;
    this.#complain(problemOf({ ...answer, path: safeLine(answer.path, 200) }));
    this.checked = path;
    return path;
  }

  #complain(problem) {
    this.problem.hidden = problem === null;
    setText(this.problem, problem ?? "");
    if (problem === null) this.field.removeAttribute("aria-invalid");
    else this.field.setAttribute("aria-invalid", "true");
  }

  /** Offer recent folders, or what completes the typed path. */
  async #suggest() {
    const serial = ++this.#serial;
    const text = this.value;
    const typed = text !== this.field.defaultValue && /[/~]/.test(text);
    const recent = [...new Set([this.app.cwd, ...foldersOf(this.app.sessions)].filter(Boolean))];
    let options = typed ? recentOnes(recent, text) : recent;
    if (typed && this.app.offers.listFolders !== undefined) {
      const { parent, prefix } = splitPath(text);
      try {
        const { folders } = await this.app.call("_antiphon/list_folders", { path: parent, prefix });
        options = [...new Set([...completions(text, folders), ...options])];
      } catch {
        // Recent folders are offered all the same.
      }
    }
    if (serial !== this.#serial || document.activeElement !== this.field) return;
    this.#options = options.filter((path) => path !== text).slice(0, SHOWN);
    this.#at = -1;
    replace(this.list, this.#options.map((path, index) => this.#row(path, index)));
    this.list.hidden = this.#options.length === 0;
    this.#mark();
  }

  #row(path, index) {
    const choose = (event) => {
      event.preventDefault(); // the field keeps the focus
      this.#choose(path);
    };
    return h("li", { role: "option", id: `${this.list.id}-${index}`, onpointerdown: choose }, safeLine(path, 200));
  }

  #choose(path) {
    this.value = path;
    this.touched = true;
    this.#close();
    this.check();
  }

  #close() {
    this.#serial += 1;
    clearTimeout(this.#timer);
    this.list.hidden = true;
    this.#mark();
  }

  #mark() {
    const open = !this.list.hidden;
    this.field.setAttribute("aria-expanded", String(open));
    [...this.list.children].forEach((row, index) => {
      row.setAttribute("aria-selected", String(index === this.#at));
      if (index === this.#at && open) row.scrollIntoView({ block: "nearest" });
    });
    if (open && this.#at >= 0) this.field.setAttribute("aria-activedescendant", `${this.list.id}-${this.#at}`);
    else this.field.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    if (event.isComposing) return;
    const open = !this.list.hidden;
    const { length } = this.#options;
    const chosen = this.#options[this.#at];
    if (event.key === "ArrowDown" && !open) this.#suggest();
    else if (event.key === "ArrowDown") this.#at = (this.#at + 1) % length;
    else if (event.key === "ArrowUp" && open) this.#at = (this.#at + length) % (length + 1) || -1;
    else if (event.key === "Tab" && !event.shiftKey && open && chosen) this.#complete(chosen);
    else if (event.key === "Enter" && open && chosen) this.#choose(chosen);
    else if (event.key === "Enter") {
      this.#close();
      this.app.emit("opened"); // on to the prompt
    } else if (event.key === "Escape" && open) this.#close();
    else return;
    this.#mark();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Take a folder and go on with what is in it. */
  #complete(path) {
    this.value = `${path.replace(/\/$/, "")}/`;
    this.#suggest();
  }
}
