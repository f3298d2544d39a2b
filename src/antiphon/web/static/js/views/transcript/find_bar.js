// Search in the transcript. The search of the browser finds only the rows that are drawn.

import { h, setText } from "../../dom.js";
import { icon, iconButton } from "../../icons.js";
import { rangesIn, search } from "./search.js";
import { textsOf } from "./items.js";

const PAUSE = 120;

/** @param {{session: () => object, items: () => object[], list: Window}} around */
export class FindBar {
  #input = h("input", {
    type: "search",
    placeholder: "Find in the transcript",
    "aria-label": "Find in the transcript",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => this.#later(),
    onkeydown: (event) => this.#key(event),
  });
  #count = h("span", { class: "count", role: "status" });
  element = h("search", { class: "find-bar", hidden: true }, icon("search"), this.#input, this.#count,
    iconButton("up", "Previous", () => this.#go(1)), iconButton("down", "Next", () => this.#go(-1)),
    iconButton("close", "Close", () => this.close()));
  #around;
  /** The element that had the focus before. */
  #before = null;
  #stop = () => {};
  #timer = 0;
  #results = [];
  #at = 0;
  #within = 0;
  #highlights = "highlights" in CSS ? { all: new Highlight(), now: new Highlight() } : null;

  constructor(around) {
    this.#around = around;
    if (!this.#highlights) return;
    CSS.highlights.set("found", this.#highlights.all);
    CSS.highlights.set("found-now", this.#highlights.now);
  }

  open() {
    if (this.element.hidden) this.#before = document.activeElement;
    this.element.hidden = false;
    this.#input.focus();
    this.#input.select();
    if (this.#input.value) this.#run();
  }

  close() {
    if (this.element.hidden) return;
    this.element.hidden = true;
    this.#stop();
    this.#highlights?.all.clear();
    this.#highlights?.now.clear();
    if (this.#before?.isConnected) this.#before.focus({ preventScroll: true });
  }

  /** Mark the matches in the rows that are drawn. */
  mark() {
    if (this.element.hidden || !this.#highlights) return;
    this.#highlights.all.clear();
    this.#highlights.now.clear();
    const wanted = this.#input.value;
    if (!wanted) return;
    const now = this.#results[this.#at]?.index;
    for (const view of this.#around.list.shownViews()) {
      const ranges = rangesIn(view.element, wanted);
      ranges.forEach((range, at) => {
        const chosen = view.index === now && at === Math.min(this.#within, ranges.length - 1);
        this.#highlights[chosen ? "now" : "all"].add(range);
      });
    }
  }

  #key(event) {
    if (event.key === "Enter") this.#go(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#run(), PAUSE);
  }

  #run() {
    this.#stop();
    this.#results = [];
    this.#at = 0;
    this.#within = 0;
    const wanted = this.#input.value;
    if (!wanted) {
      setText(this.#count, "");
      this.mark();
      return;
    }
    let shown = false;
    const { terminals } = this.#around.session();
    this.#stop = search(this.#around.items(), wanted, (item) => textsOf(item, terminals), (results, done) => {
      this.#results = results;
      if (results.length && !shown) {
        shown = true;
        this.#within = results[0].count - 1;
        this.#show();
      }
      this.#tell(done);
      if (done && !results.length) this.mark();
    });
  }

  /** Results are in order from the end of the transcript, so "up" is the next result. */
  #go(step) {
    const result = this.#results[this.#at];
    if (!result) return;
    this.#within -= step;
    if (this.#within < 0 || this.#within >= result.count) {
      this.#at = (this.#at + step + this.#results.length) % this.#results.length;
      this.#within = step > 0 ? this.#results[this.#at].count - 1 : 0;
    }
    this.#show();
    this.#tell(true);
  }

  #show() {
    const { index } = this.#results[this.#at];
    const view = this.#around.list.reveal(index);
    view?.open?.();
    requestAnimationFrame(() => {
      this.mark();
      const [range] = this.#highlights?.now ?? [];
      range?.startContainer.parentElement?.scrollIntoView({ block: "nearest" });
    });
  }

  #tell(done) {
    const total = this.#results.reduce((sum, { count }) => sum + count, 0);
    const before = this.#results.slice(0, this.#at).reduce((sum, { count }) => sum + count, 0);
    const place = before + (this.#results[this.#at]?.count ?? 0) - this.#within;
    const goesOn = done ? "" : "…";
    setText(this.#count, total ? `${total - place + 1} of ${total}${goesOn}` : goesOn || "No matches");
  }
}
