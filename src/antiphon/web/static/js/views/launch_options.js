// The options of a new session: those with which the last session of its agent began. What the user changes is set
// as soon as the session is there.

import { h, replace, setLabel } from "../dom.js";
import { keep, kept } from "../storage.js";
import { arranged, control } from "./options.js";

const LONGEST = 50_000;

export class LaunchOptions {
  /** The values that the user chose, by the ids of the options. */
  values = {};

  constructor(app) {
    this.app = app;
    this.element = h("div", { class: "options", role: "group" });
    setLabel(this.element, "aria-label", "Options of the new session");
    app.on("begun", remember);
  }

  /** Show the options of an agent. */
  show(agent) {
    this.values = {};
    const options = agent ? known(agent.name) : [];
    const chooser = {
      setOption: async (id, value) => {
        this.values[id] = value;
      },
    };
    replace(this.element, arranged(options).map((option) => control(this.app, chooser, option, false)));
    this.element.hidden = options.length === 0;
  }
}

function remember(session) {
  if (!session.agent || !session.options.length) return;
  const text = JSON.stringify(arranged(session.options));
  if (text.length < LONGEST) keep(`options.${session.agent}`, text);
}

/** The options with which the last session of an agent began. */
function known(name) {
  try {
    const read = JSON.parse(kept(`options.${name}`, "[]"));
    return Array.isArray(read) ? read : [];
  } catch {
    return [];
  }
}
