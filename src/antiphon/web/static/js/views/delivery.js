// The choice of what a prompt does while the agent works.

import { h, replace } from "../dom.js";

const WAYS = {
  queue: {
    name: "Queue",
    invites: "Queue a prompt",
    says: "The prompt waits until this turn ends. You can change it until then.",
  },
  steer: {
    name: "Steer",
    invites: "Steer this turn",
    says: "The agent gets the prompt during this turn.",
  },
  interrupt: {
    name: "Interrupt",
    invites: "Stop this turn and send a new prompt",
    says: "This turn is stopped first. Then the agent gets the prompt.",
  },
  agent: {
    name: "Agent decides",
    invites: "Send a prompt while the agent works",
    says: "The agent gets the prompt at once, and decides when to handle it.",
  },
};

/** The deliveries that the hub announces. Pure. */
export function waysOf(capabilities) {
  const offered = capabilities?._meta?.antiphon?.delivery;
  return Object.keys(WAYS).filter((way) =>
    Array.isArray(offered) ? offered.includes(way) : way === "queue",
  );
}

/** The default delivery of the hub. Pure. */
export function usualWay(capabilities) {
  const usual = capabilities?._meta?.antiphon?.busy;
  return waysOf(capabilities).includes(usual) ? usual : "queue";
}

export class Delivery {
  #way = "queue";
  #chosen = false;

  constructor(changed) {
    this.changed = changed;
    this.element = h("div", {
      class: "segments",
      role: "radiogroup",
      "aria-label": "What a prompt does while the agent works",
      hidden: true,
    });
  }

  get way() {
    return this.#way;
  }

  get invites() {
    return WAYS[this.#way].invites;
  }

  get says() {
    return WAYS[this.#way].says;
  }

  show(working, capabilities) {
    const ways = waysOf(capabilities);
    if (!this.#chosen || !ways.includes(this.#way)) this.#way = usualWay(capabilities);
    const hide = !working || ways.length < 2;
    this.element.hidden = hide;
    const drawn = `${ways.join()}:${usualWay(capabilities)}`;
    if (this.element.dataset.drawn !== drawn) {
      this.element.dataset.drawn = drawn;
      replace(
        this.element,
        ways.map((way) => this.#segment(way)),
      );
    }
  }

  #segment(way) {
    const input = h("input", {
      type: "radio",
      name: "delivery",
      value: way,
      checked: way === this.#way,
      onchange: () => {
        this.#way = way;
        this.#chosen = true;
        this.changed();
      },
    });
    return h("label", { title: WAYS[way].says }, input, h("span", null, WAYS[way].name));
  }
}
