// The row below the composer of a new session: the agent, the folder, and a way to start without a prompt.

import { canStart } from "../agents.js";
import { h, setText } from "../dom.js";
import { keep, kept } from "../storage.js";
import { AgentMenu } from "./agent_menu.js";
import { FolderField } from "./folder_field.js";
import { LaunchOptions } from "./launch_options.js";

export class Launch {
  /** `start()` begins a session without a prompt. */
  constructor(app, start) {
    this.app = app;
    this.agents = new AgentMenu(app, (agent) => this.#choose(agent));
    this.options = new LaunchOptions(app);
    this.folder = new FolderField(app, { id: "folder" });
    this.advice = h("p", { class: "note", role: "status", hidden: true });
    this.element = h(
      "div",
      { class: "launch", hidden: true },
      h(
        "div",
        { class: "launch-row" },
        this.agents.element,
        h("div", { class: "launch-folder" }, this.folder.field, this.folder.list),
        h("button", { type: "button", class: "quiet", onclick: start }, "Start without a prompt"),
      ),
      this.folder.problem,
      this.advice,
      this.options.element,
    );
    app.agentList.on("changed", () => this.#settle());
    app.on("link", () => this.#settle());
    app.on("again", ({ cwd, agent }) => {
      this.folder.value = cwd;
      this.folder.touched = true;
      const known = app.agentList.find(agent);
      if (known) this.#choose(known);
    });
  }

  show(shown) {
    const opens = shown && this.element.hidden;
    this.element.hidden = !shown;
    if (!opens) return;
    this.folder.touched = false;
    this.agents.show(null);
    this.#settle();
  }

  /** Show the usual agent and folder, where the user has not chosen others. */
  #settle() {
    if (!this.agents.chosen) {
      this.agents.show(this.app.agentList.usual(kept("agent")));
      this.options.show(this.agents.chosen);
    }
    if (!this.folder.touched && this.app.cwd) this.folder.offer(this.app.cwd);
    this.#advise();
  }

  #choose(agent) {
    keep("agent", agent.name);
    this.agents.show(agent);
    this.options.show(agent);
    this.#advise();
    this.app.emit("opened");
  }

  #advise() {
    const agent = this.agents.chosen;
    const words = agent && agent.status !== "ready" ? [agent.detail, agent.advice].filter(Boolean).join(" ") : "";
    setText(this.advice, words);
    this.advice.hidden = !words;
  }

  /** What to start, if that is known to be possible: `{agent, cwd}`, or null. */
  get ready() {
    const agent = this.agents.chosen;
    if (this.folder.checked === null || (agent && !canStart(agent))) return null;
    return this.#begins(this.folder.checked);
  }

  /** As `ready`, but the hub is asked about the folder; null if that or the agent cannot be used, which the row
   * then says. */
  async choice() {
    const agent = this.agents.chosen;
    if (agent && !canStart(agent)) {
      this.#advise();
      this.agents.button.focus();
      return null;
    }
    const cwd = await this.folder.check();
    if (cwd === null) {
      this.folder.field.focus();
      return null;
    }
    return this.#begins(cwd);
  }

  #begins(cwd) {
    return { cwd, agent: this.agents.chosen?.name ?? null, values: this.options.values };
  }
}
