// Below the composer of a new session: recent sessions, and the tour of the built-in agent.

import { BUILT_IN, canStart } from "../agents.js";
import { h, replace } from "../dom.js";
import { icon } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { ago } from "../words.js";
import { arranged } from "./sessions.js";
import { stateDot, stateOf } from "./state.js";
import { UNTITLED } from "./title.js";
import { tell } from "./toasts.js";

const LATEST = 5;
/** Milliseconds that the built-in agent gets to say that it has a tour. */
const PATIENCE = 10_000;

export function mount(app, main) {
  const element = h("section", { id: "recent", "aria-label": "Recent sessions", hidden: true });
  main.append(element);
  let drawn = "";
  const show = () => {
    const hidden = app.link.state === "connecting" || app.session !== null;
    element.hidden = hidden;
    if (hidden) return;
    const known = arranged(app.sessions).slice(0, LATEST);
    const tour = hasTour(app);
    const now = Date.now();
    const key = JSON.stringify([known, tour, known.map((entry) => ago(entry.updatedAt, now))]);
    if (key === drawn) return;
    drawn = key;
    replace(element, tour ? tourButton(app, known.length === 0) : null, known.length ? list(app, known, now) : about(app));
  };
  for (const kind of ["sessions", "session", "link"]) app.on(kind, show);
  app.agentList.on("changed", show);
  setInterval(show, 30_000);
  show();
}

/** Whether the built-in agent works here, which has a tour. */
export function hasTour(app) {
  const builtIn = app.agentList.find(BUILT_IN);
  return app.begins && builtIn !== null && canStart(builtIn);
}

function tourButton(app, primary) {
  return h(
    "p",
    { class: "begin" },
    h(
      "button",
      { type: "button", class: primary && "primary", onclick: () => tour(app) },
      icon("resume"),
      "Take the tour",
    ),
    h("span", { class: "note" }, "A demonstration with the built-in agent. It works offline."),
  );
}

/** Start the built-in agent, and its tour. Another agent with its name has no tour, and is not prompted. */
export function tour(app) {
  const session = app.starts.begin({ cwd: app.cwd ?? "/", agent: BUILT_IN });
  const has = () => session.starting === null && session.commands.some((command) => command.name === "tour");
  const stops = [];
  const end = () => {
    clearTimeout(timer);
    for (const stop of stops) stop();
  };
  const begin = () => {
    if (!has() || session.items.length) return;
    end();
    session.prompt([{ type: "text", text: "/tour" }]).catch((error) => tell(app, "The tour did not start", error));
  };
  const timer = setTimeout(() => {
    end();
    if (session.starting === null) tell(app, "There is no tour", new Error("This agent is not the built-in one."));
  }, PATIENCE);
  for (const kind of ["commands", "state"]) stops.push(session.on(kind, begin));
}

function list(app, known, now) {
  return [
    h("h2", null, "Recent sessions"),
    h("ul", { class: "recent" }, known.map((entry) => h("li", null, latest(app, entry, now)))),
  ];
}

function latest(app, entry, now) {
  const open = () => app.open(entry.sessionId).catch((error) => tell(app, "The session was not opened", error));
  const state = entry.state && entry.state !== "idle" ? stateOf(entry.state).word : null;
  return h(
    "button",
    { type: "button", onclick: open },
    stateDot(entry.state),
    h("span", null, safeLine(entry.title ?? "", 80) || UNTITLED),
    h("small", null, [state, ago(entry.updatedAt, now)].filter(Boolean).join(" · ")),
  );
}

function about(app) {
  if (!app.begins) return h("p", { class: "note" }, "No sessions yet.");
  return h(
    "ul",
    { class: "about" },
    h("li", null, "The agent works on the machine of this hub. The hub stores everything it says and does."),
    h("li", null, "Your editor, a terminal, this page and other people can share one session."),
    h("li", null, "The session goes on when you close the page."),
  );
}
