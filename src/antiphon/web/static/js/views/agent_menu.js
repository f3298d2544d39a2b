// The menu of agents, each with its status, and the dialog that adds one to the hub.

import { canStart, statusOf } from "../agents.js";
import { ask } from "../dialog.js";
import { h, replace, setLabel, setText } from "../dom.js";
import { partsOf } from "../failure.js";
import { icon } from "../icons.js";
import { opensMenu } from "../menu.js";

/** A button that shows an agent and opens the menu. `choose(agent)` is called with the one that is chosen. */
export class AgentMenu {
  #chosen = null;

  /** `label`: what the button says; by default it names the agent that is shown. */
  constructor(app, choose, { label = null } = {}) {
    this.app = app;
    this.choose = choose;
    this.label = label;
    this.button = h("button", { type: "button", class: "quiet agent" });
    this.element = h("div", { class: "agent-menu" }, this.button);
    opensMenu(this.button, () => this.#items(), { label: "Agents", align: "start" });
    app.agentList.on("changed", () => this.show(this.#chosen));
    this.show(null);
  }

  get chosen() {
    return this.#chosen;
  }

  /** Show an agent as the chosen one. */
  show(agent) {
    this.#chosen = agent && (this.app.agentList.find(agent.name) ?? agent);
    if (this.label !== null) {
      replace(this.button, this.label, icon("fold"));
      return;
    }
    const title = this.#chosen?.title ?? "Agent";
    replace(this.button, icon("execute"), h("span", null, title), icon("fold"));
    setLabel(this.button, "aria-label", `Agent: ${title}`);
    setLabel(this.button, "title", "Choose the agent");
  }

  #items() {
    const { agentList } = this.app;
    agentList.refresh();
    const entry = (agent) => ({
      label: agent.title,
      note: statusOf(agent),
      checked: agent.name === this.#chosen?.name,
      run: () => this.choose(agent),
    });
    const there = agentList.all.filter(canStart);
    const missing = agentList.all.filter((agent) => !canStart(agent));
    const items = there.length ? there.map(entry) : ["The hub has no agents"];
    if (missing.length) items.push("How to install", ...missing.map(entry));
    if (!agentList.mayAdd) return items;
    return [...items, "More", { label: "Add an agent…", icon: icon("add"), run: () => this.#add() }];
  }

  async #add() {
    const name = await addAgent(this.app);
    const added = name && this.app.agentList.find(name);
    if (added) this.choose(added);
  }
}

/** Ask for an agent and add it. Resolves to its name, or null. */
export function addAgent(app) {
  return ask({
    title: "Add an agent",
    body: (close) => {
      const name = h("input", {
        id: "agent-name",
        required: true,
        maxlength: 64,
        autocomplete: "off",
        spellcheck: "false",
        "aria-describedby": "agent-note",
      });
      const problem = h("p", { class: "problem", role: "alert", hidden: true });
      const add = h("button", { type: "submit", class: "primary" }, "Add");
      const submit = async (event) => {
        event.preventDefault();
        add.disabled = true;
        problem.hidden = true;
        try {
          await app.agentList.add(name.value.trim());
          close(name.value.trim());
        } catch (error) {
          const { message, details, advice } = partsOf(error);
          setText(problem, [message, details, advice].filter(Boolean).join(" "));
          problem.hidden = false;
          add.disabled = false;
        }
      };
      return h(
        "form",
        { onsubmit: submit },
        h("label", { class: "field", for: "agent-name" }, h("span", null, "Name"), name),
        h(
          "p",
          { class: "note", id: "agent-note" },
          "The name of an agent that Antiphon knows, such as gemini. Any other agent is added on the hub's machine: ",
          h("code", null, "antiphon agents add NAME -- COMMAND"),
        ),
        problem,
        h("footer", null, h("button", { type: "button", onclick: () => close() }, "Cancel"), add),
      );
    },
  });
}
