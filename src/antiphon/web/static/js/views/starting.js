// The start of a session: its progress, and what to do if its agent does not start. It stays until the session is
// there or the user gives it up.

import { h, replace, setText, withCode } from "../dom.js";
import { agentWords, partsOf } from "../failure.js";
import { follow } from "../follow.js";
import { icon } from "../icons.js";
import { keep } from "../storage.js";
import { safeLine } from "../text_safety.js";
import { lasting, shortPath } from "../words.js";
import { AgentMenu } from "./agent_menu.js";

/** Seconds after which a page says that a start takes long. */
const LONG = 6;

/** How long the start of an agent has taken, as a sentence. Pure. */
export function waitWords(seconds) {
  if (seconds < LONG) return "";
  return `${lasting(seconds * 1000)} so far. The first start of an agent can take a while.`;
}

export function mount(app, main) {
  const element = h("section", { id: "starting", "aria-label": "Start of the session", hidden: true });
  main.insertBefore(element, document.getElementById("composer"));
  let timer = 0;
  let drawn = null;
  follow(app, ["state"], (session) => {
    const starting = session?.starting ?? null;
    clearInterval(timer);
    element.hidden = starting === null;
    if (starting === null) {
      drawn = null;
      replace(element);
      return;
    }
    if (starting.error) {
      if (drawn === starting.error) return;
      drawn = starting.error;
      replace(element, failure(app, session));
      return;
    }
    drawn = null;
    const wait = h("span", { class: "note" });
    const count = () => setText(wait, waitWords(Math.floor((Date.now() - starting.since) / 1000)));
    timer = setInterval(count, 1000);
    replace(element, progress(app, session, wait));
  });
}

function progress(app, session, wait) {
  const { agent, cwd } = session.starting;
  const name = app.agentList.find(agent)?.title ?? (safeLine(agent ?? "", 60) || "the agent");
  return h(
    "div",
    { class: "start-card" },
    h("span", { class: "spinner" }),
    h("p", { role: "status" }, `Starting ${name} in ${shortPath(cwd)}`),
    wait,
    h("button", { type: "button", class: "quiet", onclick: () => giveUp(app, session) }, "Cancel"),
  );
}

function failure(app, session) {
  const { starting } = session;
  const { message, advice } = partsOf(starting.error);
  const words = agentWords(starting.error);
  const again = (agent) => {
    keep("agent", agent);
    app.starts.run(session, { agent: agent ?? starting.agent });
    app.emit("opened");
  };
  const name = app.agentList.find(starting.agent)?.title ?? (safeLine(starting.agent ?? "", 60) || "The agent");
  const menu = new AgentMenu(app, (agent) => again(agent.name), { label: "Choose another agent" });
  return h(
    "div",
    { class: "start-card failed", role: "alert" },
    h("h2", null, icon("warning"), `${name} did not start`),
    h("p", null, message),
    words ? h("pre", { tabindex: "0", role: "region", "aria-label": "What the agent said" }, words) : null,
    advice ? h("p", { class: "advice" }, withCode(advice)) : null,
    h(
      "div",
      { class: "start-actions" },
      h("button", { type: "button", class: "primary", onclick: () => again(starting.agent) }, "Try again"),
      app.agentList.all.length > 1 ? menu.element : null,
      h("button", { type: "button", onclick: () => giveUp(app, session) }, "Back to the prompt"),
    ),
  );
}

/** Give the session up. Its prompts go back to the composer. */
function giveUp(app, session) {
  const { text, cwd, agent } = session.starting;
  app.starts.drop(session);
  app.emit("again", { cwd, agent });
  if (text) app.emit("compose", { text });
}
