// Long texts: the beginning and the end at once, the middle in slices on demand.

import { h, setText } from "../../dom.js";
import { HEAD, partsOf } from "../../text_parts.js";
import { bytes } from "../../words.js";

const SLICE = 120_000;

/** Shows a text with `draw(element, part)`, which may be called again when the part has grown. */
export class Slices {
  element = h("div", { class: "slices" });
  #draw;
  #head = h("div");
  #tail = h("div");
  #more = h("button", { type: "button", class: "more", onclick: () => this.#show() });
  #text = "";
  #shown = HEAD;
  #tailFrom = -1;

  constructor(draw) {
    this.#draw = draw;
    this.element.append(this.#head);
  }

  set(text) {
    this.#text = text;
    const { head, tail } = partsOf(text, this.#shown);
    this.#draw(this.#head, text.slice(0, head));
    if (head === text.length) {
      this.#more.remove();
      this.#tail.remove();
      return;
    }
    if (tail !== this.#tailFrom) {
      this.#tail = h("div");
      this.#tailFrom = tail;
    }
    this.#draw(this.#tail, text.slice(tail));
    const left = tail - head;
    setText(this.#more, `Show ${bytes(Math.min(SLICE, left))} more of ${bytes(left)} hidden`);
    this.element.replaceChildren(this.#head, this.#more, this.#tail);
  }

  #show() {
    this.#shown = Math.max(this.#shown, HEAD) + SLICE;
    this.set(this.#text);
  }
}
