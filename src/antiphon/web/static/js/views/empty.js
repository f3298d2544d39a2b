// What stands where nothing was said yet: the heading of the page for a new session, and an empty session with
// the first commands of its agent.

import { h, replace } from "../dom.js";
import { follow } from "../follow.js";
import { mark } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { shortPath } from "../words.js";

const OFFERED = 6;

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
      session.unsent.length === 0 &&
      session.state === "idle" &&
      session.loading !== true &&
      !session.queue.entries.length;
    document.documentElement.dataset.empty = nothing ? "hub" : fresh ? "session" : "no";
    element.hidden = !nothing && !fresh;
    const key = nothing
      ? `hub ${app.role} ${app.begins}`
      : fresh
        ? `${session.id} ${session.cwd} ${session.commands.map((each) => each.name)}`
        : "";
    if (key === drawn) return;
    drawn = key;
    if (nothing) replace(element, welcome(app));
    else if (fresh) replace(element, opening(app, session));
    else replace(element);
  };
  follow(app, ["transcript", "commands", "state", "queue", "info"], show);
  app.on("sessions", show);
  app.on("link", show);
}

function welcome(app) {
  return h(
    "div",
    { class: "welcome" },
    mark(),
    h("h2", null, app.begins ? "What should the agent do?" : "Sessions of this hub"),
    app.begins ? null : h("p", { class: "note" }, listing(app)),
  );
}

function listing(app) {
  if (app.only !== null) return "Your login is for these sessions only.";
  return "You are an observer. New sessions appear here.";
}

function opening(app, session) {
  const offers = session.commands.slice(0, OFFERED);
  const use = (command) => () => app.emit("compose", { text: `/${command.name} ` });
  const about = [safeLine(session.agent ?? "", 40), session.cwd && shortPath(session.cwd)].filter(Boolean).join(" in ");
  return h(
    "div",
    { class: "welcome" },
    h("h2", null, "What should the agent do?"),
    about ? h("p", { class: "note" }, about) : null,
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
