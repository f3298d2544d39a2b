// A virtual list: only the rows near the view exist. It follows the end while it is there; otherwise the visible
// rows do not move, whatever changes above them.

import { h } from "../../dom.js";
import { Heights } from "./heights.js";

const BEYOND = 700;
const NEAR = 32;

export class Window {
  #content = h("div", { class: "rows" });
  #runway = h("div", { class: "runway" }, this.#content);
  element = h("div",
    { class: "scroll", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Messages" },
    this.#runway);
  /** Whether the list follows its end. */
  atEnd = true;
  #rows = [];
  #heights = new Heights();
  #views = new Map();
  #first = 0;
  #top = 0;
  #anchor = null;
  #make;
  #guess;
  #moved;
  #frame = 0;
  #sizes = new ResizeObserver((entries) => this.#resized(entries));

  /** @param {{make: (row) => object, guess: (row) => number, moved: () => void}} how */
  constructor({ make, guess, moved }) {
    this.#make = make;
    this.#guess = guess;
    this.#moved = moved;
    this.element.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.#sizes.observe(this.element);
  }

  /** Replace all rows. */
  reset(rows) {
    for (const view of this.#views.values()) this.#drop(view);
    this.#views.clear();
    this.#heights = new Heights();
    this.#rows = rows;
    this.atEnd = true;
    this.#anchor = null;
    this.changed();
  }

  /** Rows were added, or some of them have changed. */
  changed() {
    const known = this.#heights.length;
    for (const row of this.#rows.slice(known)) this.#heights.push(this.#guess(row));
    this.#render();
  }

  /** Drop the heights of the last rows, which were replaced. */
  truncate(length) {
    this.#heights.truncate(length);
  }

  viewAt(index) {
    return this.#views.get(this.#rows[index]?.key) ?? null;
  }

  *shownViews() {
    yield* this.#views.values();
  }

  toEnd() {
    this.atEnd = true;
    this.#top = this.element.scrollTop;
    this.#render();
  }

  /** Scroll to a row. Returns its view. */
  reveal(index) {
    this.atEnd = false;
    const height = this.element.clientHeight;
    const top = this.#heights.offset(index);
    this.#goTo(Math.max(0, top - height / 5));
    this.#anchor = { index, delta: -Math.min(top, height / 5) };
    this.#render();
    return this.viewAt(index);
  }

  // --- scrolling ---

  /** Home and End. The browser would scroll there step by step, and stop where the height of a row differs from
   * its estimate. */
  #key(event) {
    const go = { Home: () => this.reveal(0), End: () => this.toEnd() }[event.key];
    if (!go || event.target !== this.element || event.shiftKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go();
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    const up = scrollTop < this.#top - 1;
    this.#top = scrollTop;
    if (scrollHeight - scrollTop - clientHeight < NEAR) this.atEnd = true;
    else if (up) this.atEnd = false;
    this.#anchor = null;
    this.#moved();
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#render());
  }

  #goTo(top) {
    this.element.scrollTop = top;
    this.#top = this.element.scrollTop;
  }

  #stick() {
    this.#goTo(this.element.scrollHeight);
  }

  /** The row at the top, and the offset within it. */
  #hold() {
    if (this.#anchor) return this.#anchor;
    if (!this.#rows.length) return null;
    const index = this.#heights.find(this.#top);
    return { index, delta: this.#top - this.#heights.offset(index) };
  }

  /** Notice that the user scrolled up before the scroll event comes. */
  #heed() {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    if (scrollTop >= this.#top - 1 || scrollHeight - scrollTop - clientHeight < NEAR) return;
    this.atEnd = false;
    this.#top = scrollTop;
    this.#anchor = null;
  }

  #keepStill(anchor) {
    if (this.atEnd) this.#stick();
    else if (anchor) {
      const top = this.#heights.offset(anchor.index) + anchor.delta;
      if (Math.abs(top - this.element.scrollTop) > 0.5) this.#goTo(top);
    }
    this.#moved();
  }

  // --- rows ---

  #render() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#heed();
    const anchor = this.#hold();
    // Estimated heights are measured once a row exists; then there may be room for more rows.
    for (let round = 0; round < 4; round += 1) if (!this.#place()) break;
    this.#keepStill(anchor);
  }

  /** Create the rows near the view. Returns whether a height differed from its estimate. */
  #place() {
    const height = this.element.clientHeight || innerHeight;
    const total = this.#heights.total;
    const top = this.atEnd ? Math.max(0, total - height) : Math.min(this.#top, total);
    const first = this.#rows.length ? this.#heights.find(Math.max(0, top - BEYOND)) : 0;
    const last = this.#rows.length ? this.#heights.find(top + height + BEYOND) + 1 : 0;
    this.#fill(first, last);
    let changed = false;
    for (let index = first; index < last; index += 1) {
      const view = this.#views.get(this.#rows[index].key);
      if (this.#heights.set(index, heightOf(view)) !== 0) changed = true;
    }
    this.#frameUp();
    return changed;
  }

  #fill(first, last) {
    const wanted = new Set();
    for (let index = first; index < last; index += 1) wanted.add(this.#rows[index].key);
    for (const [key, view] of this.#views) {
      if (wanted.has(key)) continue;
      this.#drop(view);
      this.#views.delete(key);
    }
    let place = this.#content.firstChild;
    for (let index = first; index < last; index += 1) {
      const view = this.#viewOf(index);
      if (view.row === place) place = place.nextSibling;
      else this.#content.insertBefore(view.row, place);
    }
    this.#first = first;
  }

  #viewOf(index) {
    const row = this.#rows[index];
    let view = this.#views.get(row.key);
    if (view && view.item !== row) {
      this.#drop(view);
      view = null;
    }
    if (!view) {
      view = this.#make(row);
      view.version = null;
      view.row = h("div", { class: "row" }, view.element);
      this.#views.set(row.key, view);
      this.#sizes.observe(view.row);
    }
    view.index = index;
    if (view.version !== row.version) {
      view.version = row.version;
      view.update();
    }
    return view;
  }

  #drop(view) {
    this.#sizes.unobserve(view.row);
    if (view.row.contains(document.activeElement)) this.element.focus({ preventScroll: true });
    view.row.remove();
  }

  #frameUp() {
    this.#runway.style.height = `${this.#heights.total}px`;
    // Fractions of pixels would blur the letters.
    this.#content.style.top = `${Math.round(this.#heights.offset(this.#first))}px`;
  }

  #resized(entries) {
    this.#heed();
    const anchor = this.#hold();
    let changed = entries.some(({ target }) => target === this.element);
    for (const view of this.#views.values()) {
      if (this.#rows[view.index] !== view.item) continue;
      if (this.#heights.set(view.index, heightOf(view)) !== 0) changed = true;
    }
    if (!changed) return;
    this.#frameUp();
    this.#keepStill(anchor);
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#render());
  }
}

function heightOf(view) {
  return view.row.getBoundingClientRect().height;
}
