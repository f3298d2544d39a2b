// All changes of the session by file, over the transcript: each file once, with what it has become.

import { h, on, replace, setText } from "../dom.js";
import { follow } from "../follow.js";
import { changesOf, patchOf, patchText } from "../fold/changes.js";
import { iconButton } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { counted, within } from "../words.js";
import { copyButton } from "./transcript/copy_button.js";
import { DiffView } from "./transcript/diff.js";

/** Files that are drawn at first, and with each click on "more". */
const SHOWN = 30;
/** Milliseconds between two drawings while the agent works. */
const PAUSE = 800;

export function mount(app, element) {
  const view = new ChangesView(app);
  element.append(view.element);
  view.around = element.firstElementChild;
}

class ChangesView {
  #app;
  #session = null;
  #shown = SHOWN;
  #timer = 0;
  #before = null;
  #files = [];
  /** By path: the element of a file, and what it was drawn from. */
  #drawn = new Map();
  #heading = h("h2", { tabindex: "-1" }, "Changes");
  #counts = h("span", { class: "facts" });
  #copy = copyButton(() => this.#patch(), "Copy all changes as a patch", "Copy as patch");
  #list = h("div", { class: "changes-files" });
  element = h("section", { class: "changes", "aria-label": "All changes", hidden: true },
    h("header", null, this.#heading, this.#counts, h("span", { class: "spacer" }), this.#copy,
      iconButton("close", "Back to the transcript", () => this.close())),
    this.#list);

  constructor(app) {
    this.#app = app;
    app.on("changes", ({ path = null } = {}) => this.open(path));
    app.on("reveal", () => this.close());
    app.on("session", () => this.close());
    on(this.element, "keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      event.preventDefault();
      this.close();
    });
    follow(app, ["files"], (session) => {
      this.#session = session;
      if (!this.element.hidden && !this.#timer) this.#timer = setTimeout(() => this.#draw(), PAUSE);
    });
  }

  open(path) {
    if (!this.#session) return;
    if (this.element.hidden) this.#before = document.activeElement;
    this.element.hidden = false;
    this.around.inert = true;
    this.#draw();
    if (path !== null) this.#reveal(path);
    else this.#heading.focus({ preventScroll: true });
  }

  close() {
    if (this.element.hidden) return;
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.element.hidden = true;
    this.around.inert = false;
    this.#drawn.clear();
    replace(this.#list);
    this.#shown = SHOWN;
    if (this.#before?.isConnected) this.#before.focus();
  }

  #patch() {
    const cwd = this.#session?.cwd;
    return this.#files.map((file) => patchOf(file, (path) => within(path, cwd))).join("");
  }

  #draw() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (!this.#session) return;
    this.#files = changesOf(this.#session.items.filter(({ kind }) => kind === "tool"));
    const count = this.#files.length;
    setText(this.#counts, count ? counted(count, "file") : "");
    this.#copy.hidden = count === 0;
    const wanted = this.#files.slice(0, this.#shown);
    const elements = wanted.map((file) => this.#file(file));
    for (const path of this.#drawn.keys()) if (!wanted.some((file) => file.path === path)) this.#drawn.delete(path);
    const rest = count - wanted.length;
    replace(this.#list,
      count ? elements : h("p", { class: "nothing" }, "The agent has not changed any files yet."),
      rest > 0 ? h("button", { type: "button", class: "more", onclick: () => this.#more() },
        `Show ${counted(Math.min(SHOWN, rest), "more file")} of ${rest}`) : null);
  }

  #more() {
    this.#shown += SHOWN;
    this.#draw();
  }

  /** The element of a file, made anew only if the file has changed. */
  #file(file) {
    const parts = partsOf(file);
    const text = JSON.stringify([file.operation, file.calls.length, parts]);
    const known = this.#drawn.get(file.path);
    if (known?.text === text) return known.element;
    const diffs = parts.map((part) => {
      const diff = new DiffView(this.#session.cwd, () => this.#app.emit("reveal", { id: file.calls.at(-1) }));
      diff.set(part);
      return diff.element;
    });
    const note = file.told || file.binary ? null
      : h("p", { class: "note" }, "The agent sent no diff of this file.");
    const element = h("article", { class: "changed", dataset: { path: file.path },
      "aria-label": safeLine(file.path, 200), tabindex: "-1" }, diffs, note);
    this.#drawn.set(file.path, { text, element });
    return element;
  }

  #reveal(path) {
    const at = this.#files.findIndex((file) => file.path === path || file.oldPath === path);
    if (at >= this.#shown) {
      this.#shown = at + 1;
      this.#draw();
    }
    const element = at < 0 ? this.#heading : this.#drawn.get(this.#files[at].path).element;
    element.scrollIntoView({ block: "start" });
    element.focus({ preventScroll: true });
  }
}

/** A file as the parts of a tool call that diffs are drawn from. */
function partsOf(file) {
  const part = (operation, hunks) => ({
    changes: [{ path: file.path, oldPath: file.oldPath, operation }],
    patch: { format: "git_patch", text: hunks.length ? patchText(file, operation, hunks, (path) => path) : "" },
  });
  if (!file.parts.length) return [part(file.operation, [])];
  return file.parts.map(({ hunks }, at) => part(at === 0 ? file.operation : "modify", hunks));
}
