// The agents of the hub, with their status if the hub tells it.

import { Emitter } from "./emitter.js";
import { sentence } from "./failure.js";
import { safeLine } from "./text_safety.js";

export const BUILT_IN = "rehearsal";

const STATUS = {
  ready: "Ready",
  installed: "Installed",
  needs_login: "Needs login",
  missing: "Not installed",
  failed: "Did not start",
};

/** Read the answer of `_antiphon/list_agents`. Pure. */
export function readAgents(answer) {
  const listed = Array.isArray(answer?.agents) ? answer.agents : [];
  return listed.filter((each) => typeof each?.name === "string").map(readAgent);
}

function readAgent({ name, title, status, detail, advice }) {
  const words = (given, limit) => (typeof given === "string" ? safeLine(given, limit) || null : null);
  return {
    name,
    title: words(title, 60) ?? (safeLine(name, 60) || "Unnamed agent"),
    status: Object.hasOwn(STATUS, status) ? status : null,
    detail: words(detail, 300),
    advice: typeof advice === "string" ? sentence(advice) || null : null,
  };
}

/** The status of an agent in a word, or null. Pure. */
export function statusOf({ status }) {
  return status === null ? null : STATUS[status];
}

/** Whether it makes sense to start an agent. Pure. */
export function canStart({ status }) {
  return status !== "missing";
}

export class Agents extends Emitter {
  all = [];
  #app;

  constructor(app) {
    super();
    this.#app = app;
    app.on("link", () => app.link.state === "online" && this.refresh());
  }

  get tellsStatus() {
    return this.#app.offers.listAgents !== undefined && this.#app.begins;
  }

  /** Whether this user may add agents to the hub. */
  get mayAdd() {
    return this.#app.offers.addAgent !== undefined && this.#app.begins && this.#app.role === "owner";
  }

  find(name) {
    return this.all.find((agent) => agent.name === name) ?? null;
  }

  /** The agent to offer first: the one that was used last, or the first that can start. */
  usual(last) {
    const known = this.find(last);
    if (known && canStart(known)) return known;
    return this.all.find((agent) => agent.status === "ready") ?? this.all.find(canStart) ?? null;
  }

  /** Ask the hub again. */
  async refresh() {
    const names = this.#app.agents.filter((name) => typeof name === "string");
    let all = names.map((name) => readAgent({ name }));
    if (this.tellsStatus) {
      try {
        const told = readAgents(await this.#app.call("_antiphon/list_agents", {}));
        if (told.length) all = told;
      } catch {
        // The names are known all the same.
      }
    }
    if (JSON.stringify(all) === JSON.stringify(this.all)) return;
    this.all = all;
    this.emit("changed");
  }

  /** Add an agent that the hub knows by its name. A command can only be added on the hub's machine. */
  async add(name) {
    await this.#app.call("_antiphon/add_agent", { name });
    if (!this.#app.agents.includes(name)) this.#app.agents.push(name);
    await this.refresh();
  }
}
