// The transcript of the session that is shown.

import { h, on, replace, setText } from "../../dom.js";
import { icon } from "../../icons.js";
import { tell } from "../toasts.js";
import { FindBar } from "./find_bar.js";
import { guess, viewOf } from "./items.js";
import { Resend } from "./resend.js";
import { Window } from "./window.js";

export function mount(app, element) {
  const transcript = new Transcript(app);
  replace(element, transcript.element);
}

const SAID = { idle: "The agent has finished.", requires_action: "The agent waits for an answer." };

const WORK = { kind: "work", key: "work", version: 0 };

class Transcript {
  #app;
  #session = null;
  #stops = [];
  #fold = null;
  #revision = 0;
  #rows = [];
  #items = 0;
  #unsent = new Map();
  #timer = 0;
  #restsUntil = 0;
  /** Rows that the user opened or closed, by session, because rows are recreated while scrolling. */
  #chosen = new Map();
  #list = new Window({
    make: (item) => viewOf(item, this),
    guess,
    moved: () => this.#moved(),
  });
  #find = new FindBar({ session: () => this.#session, items: () => this.#rows, list: this.#list });
  #latest = h("button", {
    type: "button", class: "latest", hidden: true, onclick: () => this.#toLatest(), onblur: () => this.#moved(),
  }, icon("down"), "Latest");
  #loading = h("p", { class: "loading", role: "status", hidden: true },
    h("span", { class: "spinner" }), "Loading the session");
  #told = h("p", { class: "only-read", role: "status" });
  element = h("div", { class: "transcript" },
    this.#find.element, this.#list.element, this.#loading, this.#latest, this.#told);

  constructor(app) {
    this.#app = app;
    app.on("session", () => this.#follow());
    app.on("link", () => this.#restyleUnsent());
    app.on("reveal", ({ id }) => this.reveal(id));
    on(document, "keydown", (event) => {
      const wanted = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "f";
      if ((!wanted && event.key !== "F3") || !this.#session || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      this.#find.open();
    });
    this.#follow();
  }

  // For the views

  get app() { return this.#app; }
  get session() { return this.#session; }
  resend = new Resend(this);

  opened(key) {
    return this.#chosen.get(`${this.#session.id} ${key}`);
  }

  remember(key, open) {
    this.#chosen.set(`${this.#session.id} ${key}`, open);
  }

  open(sessionId) {
    this.attempt("The session was not opened", this.#app.open(sessionId));
  }

  fork(messageId) {
    this.attempt("The session was not forked", this.#app.fork(this.#session.id, messageId));
  }

  annotate(message, kind, value) {
    this.attempt("The reaction was not sent", this.#session.annotate(message, kind, value));
  }

  unannotate(id) {
    this.attempt("The reaction was not removed", this.#session.unannotate(id));
  }

  cancelTool(id) {
    this.attempt("The tool call was not stopped", this.#session.cancelTool(id));
  }

  /** Wait for something that a view began, and show why it failed. */
  async attempt(title, doing) {
    try {
      await doing;
    } catch (error) {
      tell(this.#app, title, error);
    }
  }

  // Drawing

  #follow() {
    for (const stop of this.#stops) stop();
    this.#find.close();
    this.#session = this.#app.session;
    this.#fold = null;
    if (!this.#session) {
      this.#rows = [];
      this.#list.reset(this.#rows);
      this.#moved();
      return;
    }
    this.#stops = [
      this.#session.on("transcript", () => this.#changed()),
      this.#session.on("state", () => this.#state()),
      this.#session.on("questions", () => this.#asked()),
    ];
    this.#state();
  }

  /** A tool call is folded while its question is open, and is over when its turn is. */
  #asked() {
    for (const view of this.#list.shownViews()) if (view.item.kind === "tool") view.update();
  }

  /** Draw at most a quarter of the time, because a long growing paragraph is laid out each time. */
  #changed() {
    if (this.#timer) return;
    const wait = this.#restsUntil - performance.now();
    if (wait > 0 && this.#fold === this.#session.fold) {
      this.#timer = setTimeout(() => this.#draw(), wait);
    } else this.#draw();
  }

  #draw() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (!this.#session) return;
    const began = performance.now();
    this.#show();
    this.#restsUntil = performance.now() + 3 * (performance.now() - began);
  }

  #show() {
    const { fold, items, loading } = this.#session;
    this.#loading.hidden = !loading || items.length > 0;
    if (fold !== this.#fold || fold.revision !== this.#revision) {
      this.#fold = fold;
      this.#revision = fold.revision;
      this.#items = 0;
      this.#rows = [];
      this.#unsent.clear();
      this.#take(items);
      this.#list.reset(this.#rows);
    } else {
      this.#take(items);
      this.#list.changed();
    }
    this.#find.mark();
    this.#moved();
  }

  /** Take new items, followed by the pulse and the prompts that are not sent yet. */
  #take(items) {
    const { unsent, state, loading } = this.#session;
    const works = state === "running" && !loading;
    if (unsent.some(({ id }) => !this.#unsent.has(id))) this.#list.atEnd = true; // scroll to the user's own prompt
    const tail = unsent.length + Number(works);
    const before = this.#rows.length - this.#items;
    if (items.length === this.#items && unsent.length === this.#unsent.size && tail === before) return;
    this.#rows.length = this.#items;
    this.#list.truncate(this.#items);
    for (; this.#items < items.length; this.#items += 1) this.#rows.push(items[this.#items]);
    if (works) this.#rows.push(WORK);
    const known = this.#unsent;
    this.#unsent = new Map();
    for (const { id, blocks } of unsent) {
      const row = known.get(id) ?? { kind: "unsent", key: `unsent/${id}`, blocks, version: 0 };
      this.#unsent.set(id, row);
      this.#rows.push(row);
    }
  }

  #restyleUnsent() {
    for (const row of this.#unsent.values()) row.version += 1;
    if (this.#unsent.size) this.#list.changed();
  }

  #state() {
    const { state } = this.#session;
    this.#list.element.setAttribute("aria-busy", String(state === "running"));
    const said = SAID[state] ?? "";
    this.#asked();
    if (!this.#session.loading && this.#told.textContent !== said) setText(this.#told, said);
    this.#changed();
  }

  #toLatest() {
    this.#list.toEnd();
    this.#list.element.focus({ preventScroll: true });
  }

  /** Show the button to the end if it is needed, or if it has the focus. */
  #moved() {
    const needed = !this.#list.atEnd && this.#rows.length > 0;
    this.#latest.hidden = !needed && document.activeElement !== this.#latest;
  }

  /** Scroll to a message or tool call by its id, open it, and mark it for a moment. Returns whether it is
   * in the transcript. */
  reveal(id) {
    const index = this.#rows.findIndex((row) => row.id === id);
    if (index < 0) return false;
    const view = this.#list.reveal(index);
    view?.open?.();
    view?.row.classList.remove("revealed");
    requestAnimationFrame(() => view?.row.classList.add("revealed"));
    return true;
  }
}
