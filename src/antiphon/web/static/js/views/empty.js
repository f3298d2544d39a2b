// The view for an empty hub or session: an introduction, recent sessions and first steps.

import { h, replace } from "../dom.js";
import { follow } from "../follow.js";
import { icon, mark } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { ago } from "../words.js";
import { begin, newSession } from "./new_session.js";
import { arranged } from "./sessions.js";
import { stateDot, stateOf } from "./state.js";
import { tell } from "./toasts.js";

const OFFERED = 6;
const LATEST = 4;

export function mount(app, main) {
  const element = h("section", { id: "empty", "aria-label": "Getting started" });
  main.prepend(element);
  let drawn = "";
  const show = () => {
    const session = app.session;
    const nothing = app.link.state !== "connecting" && session === null;
    const fresh =
      session !== null &&
      session.items.length === 0 &&
      session.state === "idle" &&
      session.loading !== true &&
      !session.queue.entries.length;
    document.documentElement.dataset.empty = nothing ? "hub" : fresh ? "session" : "no";
    element.hidden = !nothing && !fresh;
    const key = nothing
      ? `hub ${JSON.stringify(app.sessions.slice(0, 20))} ${app.role}`
      : fresh
        ? `${session.id} ${session.commands.map((each) => each.name)}`
        : "";
    if (key === drawn) return;
    drawn = key;
    if (nothing) replace(element, welcome(app));
    else if (fresh) replace(element, opening(app, session));
    else replace(element);
  };
  follow(app, ["transcript", "commands", "state", "queue"], show);
  app.on("sessions", show);
  app.on("link", show);
}

function welcome(app) {
  const known = arranged(app.sessions).slice(0, LATEST);
  const now = Date.now();
  return h(
    "div",
    { class: "welcome" },
    mark(),
    h("h2", null, known.length ? "Recent sessions" : "One session, many voices"),
    known.length
      ? h(
          "ul",
          { class: "recent" },
          known.map((entry) => h("li", null, latest(app, entry, now))),
        )
      : h(
          "ul",
          null,
          h("li", null, "An agent works on the machine of this hub. The hub stores everything it says and does."),
          h(
            "li",
            null,
            "Your editor, a terminal, this page and other people can share one session at the same time.",
          ),
          h(
            "li",
            null,
            "All of you can prompt, queue, stop and answer questions. The session continues when you close the page.",
          ),
        ),
    !app.begins
      ? h("p", { class: "note" }, listing(app))
      : h(
          "p",
          { class: "begin" },
          known.length
            ? null
            : h(
                "button",
                { type: "button", class: "primary", onclick: () => tour(app) },
                icon("resume"),
                "Take the tour",
              ),
          h(
            "button",
            { type: "button", class: known.length && "primary", onclick: () => newSession(app) },
            icon("add"),
            "New session",
          ),
        ),
  );
}

function listing(app) {
  if (app.only !== null) return "Your login is for these sessions only.";
  return "You are an observer. New sessions appear here.";
}

function latest(app, entry, now) {
  const open = () =>
    app.open(entry.sessionId).catch((error) => tell(app, "The session was not opened", error));
  return h(
    "button",
    { type: "button", onclick: open },
    stateDot(entry.state),
    h("span", null, safeLine(entry.title ?? "", 80) || "Untitled session"),
    h(
      "small",
      null,
      [entry.state && entry.state !== "idle" ? stateOf(entry.state).word : null, ago(entry.updatedAt, now)]
        .filter(Boolean)
        .join(" · "),
    ),
  );
}

/** Create a session with the first agent, and start its tour if it has one. */
async function tour(app) {
  const session = await begin(app, { cwd: app.cwd ?? "/", agent: app.agents[0] });
  if (session === null) return;
  const has = session.commands.length === 0 || session.commands.some((command) => command.name === "tour");
  await session
    .prompt([{ type: "text", text: has ? "/tour" : "What can you do?" }])
    .catch((error) => tell(app, "The prompt was rejected", error));
}

function opening(app, session) {
  const offers = session.commands.slice(0, OFFERED);
  const use = (command) => () => app.emit("compose", { text: `/${command.name} ` });
  return h(
    "div",
    { class: "welcome" },
    h("h2", null, "What should the agent do?"),
    h(
      "p",
      { class: "note" },
      app.role === "observer" ? "No messages yet." : "Write a prompt below, or start with a command.",
    ),
    app.role === "observer"
      ? null
      : h(
          "ul",
          { class: "offers" },
          offers.map((command) =>
            h(
              "li",
              null,
              h(
                "button",
                { type: "button", onclick: use(command) },
                h("code", null, `/${safeLine(command.name, 40)}`),
                h("span", null, safeLine(command.description ?? "", 120)),
              ),
            ),
          ),
        ),
  );
}
