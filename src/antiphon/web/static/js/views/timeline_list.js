// The timeline as a list of prompts with their turns, tool calls and waiting times. A click shows the item. Rows
// stay the same elements while their times change, so that they keep the focus.

import { h, replace, setLabel, setText } from "../dom.js";
import { icon } from "../icons.js";
import { lengthOf } from "../timeline_layout.js";
import { safeLine } from "../text_safety.js";
import { hour, lasting } from "../words.js";

const LISTED = 150;
/** The outcomes of elicitations as text. */
const OUTCOMES = { accept: "answered", decline: "declined", cancel: "not now" };

/** A row of the list, with the sender of a prompt if there are several people. Pure. */
export function momentWords(item, several) {
  const title = safeLine(item.title ?? "", 120);
  const who = item.by?.name ? safeLine(item.by.name, 40) : null;
  if (item.kind === "prompt") return { who: several ? who : null, text: title || "Prompt" };
  if (item.kind !== "question") return { who: null, text: title || "Turn" };
  if (item.end === null) return { who: null, text: "Waiting for an answer" };
  const outcome = OUTCOMES[item.outcome] ?? safeLine(item.outcome ?? String(item.status ?? "ended"), 60);
  return { who: null, text: `Waited: ${outcome}${several && who ? ` by ${who}` : ""}` };
}

export class Moments {
  #rows = new Map();
  #all = false;

  /** `told(item)` returns an item as text, `iconOf(item)` the name of its icon. */
  constructor({ told, reveal, iconOf }) {
    this.told = told;
    this.reveal = reveal;
    this.iconOf = iconOf;
    this.element = h("ol", { class: "moments" });
    this.earlier = h(
      "li",
      null,
      h("button", { type: "button", class: "quiet", onclick: () => this.#showAll() }),
    );
  }

  show(moments, now) {
    this.latest = [moments, now];
    const shown = this.#all ? moments : moments.slice(-LISTED);
    const more = moments.length - shown.length;
    const several = new Set(moments.map(({ item }) => item.by?.name).filter(Boolean)).size > 1;
    const rows = new Map(shown.map((moment) => [keyOf(moment.item), this.#row(moment, now, several)]));
    this.#rows = rows;
    setText(this.earlier.firstChild, `Show ${more} earlier`);
    arrange(this.element, [...(more ? [this.earlier] : []), ...[...rows.values()].map((row) => row.element)]);
  }

  forget() {
    this.#all = false;
    this.#rows.clear();
    replace(this.element);
  }

  #showAll() {
    this.#all = true;
    this.show(...this.latest);
  }

  #row({ item, turn }, now, several) {
    const timed = turn ?? item;
    const row = this.#rows.get(keyOf(item)) ?? this.#made(item);
    const { who, text } = momentWords(item, several);
    const state = `was-${String(timed.status).replace(/\W/g, "_")}`;
    row.element.className = `of-${item.kind} ${state}${timed.end === null ? " open" : ""}`;
    setLabel(row.button, "title", this.told(timed));
    row.button.onclick = () => this.reveal(item);
    if (row.said !== `${who} ${text}`) replace(row.words, who ? h("b", null, `${who}: `) : null, text);
    row.said = `${who} ${text}`;
    setText(row.time, timed.kind === "prompt" ? hour(item.start) : lasting(lengthOf(timed, now)));
    return row;
  }

  #made(item) {
    const words = h("span", { class: "moment" });
    const time = h("span", { class: "numbers" });
    const button = h("button", { type: "button" }, icon(this.iconOf(item)), words, time);
    return { element: h("li", null, button), button, words, time, said: null };
  }
}

const keyOf = (item) => `${item.kind} ${item.id}`;

/** Put children into an order. Children at their place are not touched. */
function arrange(list, children) {
  const wanted = new Set(children);
  for (const child of [...list.children]) if (!wanted.has(child)) child.remove();
  children.forEach((child, index) => {
    if (list.children[index] !== child) list.insertBefore(child, list.children[index] ?? null);
  });
}
