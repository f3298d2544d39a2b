// The chart: a lane for each kind, and bars that arrow keys move between.

import { h, replace, setLabel } from "../dom.js";
import { layout } from "../timeline_layout.js";

const NAMES = { prompt: "Prompts", turn: "Turns", tool: "Tools", question: "Waiting" };
const ROW = 12;

export class Chart {
  #bars = new Map();
  #order = [];
  #tracks = {};
  #whole = "";

  /** `told(item)` returns an item as text; `detail` shows the item at the pointer or the focus. */
  constructor({ told, reveal, detail }) {
    this.told = told;
    this.reveal = reveal;
    this.detail = detail;
    this.element = h("div", {
      class: "chart",
      role: "group",
      "aria-label": "Overview; arrow keys walk it",
      onkeydown: (event) => this.#key(event),
      onpointerleave: () => this.#say(null),
    });
    for (const [kind, name] of Object.entries(NAMES)) {
      const track = h("div", { class: ["track", `of-${kind}`] });
      this.#tracks[kind] = track;
      this.element.append(h("div", { class: "lane" }, h("span", { class: "lane-name" }, name), track));
    }
  }

  show(items, now, whole) {
    const { lanes, breaks } = layout(items, now);
    const seen = new Set();
    this.#whole = whole;
    this.#order = [];
    for (const lane of lanes) {
      const track = this.#tracks[lane.kind];
      track.style.height = `${lane.rows * ROW}px`;
      for (const mark of track.querySelectorAll(".break")) mark.remove();
      for (const bar of lane.bars) {
        const key = `${bar.item.kind} ${bar.item.id}`;
        seen.add(key);
        this.#paint(track, key, bar);
      }
      for (const at of breaks) track.append(h("span", { class: "break", style: { left: `${at * 100}%` } }));
      track.parentElement.hidden = lane.bars.length === 0;
    }
    for (const [key, bar] of this.#bars) {
      if (seen.has(key)) continue;
      bar.element.remove();
      this.#bars.delete(key);
    }
    this.#order.sort((one, two) => one.item.start - two.item.start);
    const reached = this.#order.find(({ element }) => element.tabIndex === 0) ?? this.#order.at(-1);
    if (reached) reached.element.tabIndex = 0;
    if (!this.element.matches(":hover") && !this.element.contains(document.activeElement)) this.#say(null);
  }

  #paint(track, key, { item, left, width, row }) {
    let bar = this.#bars.get(key);
    if (!bar) {
      const element = h("button", {
        type: "button",
        tabindex: "-1",
        onclick: () => this.reveal(bar.item),
        onpointerenter: () => this.#say(bar),
        onfocus: () => this.#say(bar),
      });
      bar = { element };
      this.#bars.set(key, bar);
      track.append(element);
    }
    bar.item = item;
    const { element } = bar;
    element.className = [
      "bar",
      `was-${String(item.status).replace(/\W/g, "_")}`,
      item.end === null ? "open" : "",
    ].join(" ");
    setLabel(element, "aria-label", this.told(item));
    element.style.left = `min(${left * 100}%, 100% - 4px)`;
    element.style.width = width ? `${width * 100}%` : "";
    element.style.top = `${row * ROW}px`;
    this.#order.push(bar);
  }

  #say(bar) {
    replace(this.detail, bar === null ? this.#whole : this.told(bar.item));
  }

  #key(event) {
    const at = this.#order.findIndex(({ element }) => element === document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.#order.length - 1 }[event.key];
    if (at < 0 || to === undefined || !this.#order[to]) return;
    event.preventDefault();
    this.#order[at].element.tabIndex = -1;
    this.#order[to].element.tabIndex = 0;
    this.#order[to].element.focus();
  }
}
