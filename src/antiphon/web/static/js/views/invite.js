// Invitations: the role, the sessions, and the link, which works once.

import { ask } from "../dialog.js";
import { h, replace, setText } from "../dom.js";
import { failureLine } from "../failure.js";
import { hour, lasting } from "../words.js";
import { titleOf } from "./title.js";

const ROLES = [
  { value: "observer", title: "Watch", act: "watch", note: "See everything, change nothing" },
  {
    value: "controller",
    title: "Take part",
    act: "take part in",
    note: "Also send prompts and answer questions. Through the agent they can do what you can do.",
  },
  { value: "owner", title: "Manage", act: "manage", note: "Also close, archive and delete" },
];
const SERVING = [
  "antiphon serve",
  "--host 0.0.0.0",
  "--allow-host NAME",
  "--tls-cert cert.pem",
  "--tls-key key.pem",
];
const SAID = 1600;

/** Whether this user may invite: only owners of all sessions. */
export function mayInvite(app) {
  return app.role === "owner" && app.only === null && app.offers.link === true;
}

/** Whether an address is reachable only on its own machine. Pure. */
export function isLoopback(host) {
  return /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/i.test(host);
}

/** The link. Code and session are after the `#`, which browsers do not send. Pure. */
export function linkOf(origin, code, sessionId) {
  return `${origin}/#${new URLSearchParams({ login: code, session: sessionId })}`;
}

export function invite(app) {
  const { session } = app;
  if (session === null || !mayInvite(app)) return Promise.resolve(null);
  return ask({ title: "Invite a user", body: (close) => new Inviting(app, session, close).element });
}

class Inviting {
  constructor(app, session, close) {
    this.app = app;
    this.session = session;
    this.close = close;
    this.element = h("div", { class: "inviting" }, this.#asking());
  }

  #asking() {
    const problem = h("p", { class: "problem", role: "alert", hidden: true });
    const make = h("button", { type: "submit", class: "primary" }, "Create link");
    const form = h(
      "form",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          const { role, sessions } = Object.fromEntries(new FormData(form));
          const only = sessions === "this" ? { sessions: [this.session.id] } : {};
          make.disabled = true;
          problem.hidden = true;
          try {
            this.#made(role, sessions, await this.app.call("_antiphon/link", { role, ...only }));
          } catch (error) {
            setText(problem, failureLine(error));
            problem.hidden = false;
          }
          make.disabled = false;
        },
      },
      choice("role", "What may they do?", ROLES),
      choice("sessions", "Where?", [
        { value: "this", title: "In this session", note: titleOf(this.session) },
        { value: "all", title: "In all sessions of this hub", note: "Including new sessions" },
      ]),
      problem,
      h(
        "footer",
        null,
        h("button", { type: "button", onclick: () => this.close() }, "Cancel"),
        make,
      ),
    );
    return form;
  }

  #made(role, sessions, { code, seconds }) {
    const link = linkOf(location.origin, code, this.session.id);
    const field = h("input", {
      id: "invitation",
      readonly: true,
      spellcheck: "false",
      value: link,
      "aria-describedby": "invitation-note",
      onfocus: () => {
        field.select();
        field.scrollLeft = 0; // show its beginning
      },
    });
    const { act } = ROLES.find((each) => each.value === role);
    const where = sessions === "this" ? "this session" : "all sessions";
    replace(
      this.element,
      h(
        "div",
        { class: "field" },
        h("label", { for: "invitation" }, `A link to ${act} ${where}`),
        h("div", { class: "invitation" }, field, copier(field)),
        h(
          "p",
          { class: "note", id: "invitation-note" },
          `It works once, for ${lasting(seconds * 1000)} (until ${hour(Date.now() + seconds * 1000)}). ` +
            "The first person who opens it is logged in, so send it to one person only.",
        ),
      ),
      isLoopback(location.hostname) ? onlyHere() : null,
      h(
        "footer",
        null,
        h("button", { type: "button", onclick: () => this.#again() }, "Create another"),
        h("button", { type: "button", class: "primary", onclick: () => this.close() }, "Done"),
      ),
    );
    field.focus();
  }

  #again() {
    replace(this.element, this.#asking());
    this.element.querySelector("input").focus();
  }
}

function choice(name, legend, options) {
  return h(
    "fieldset",
    { class: "field" },
    h("legend", null, legend),
    h(
      "div",
      { class: "marks" },
      options.map(({ value, title, note }, index) =>
        h(
          "label",
          null,
          h("input", { type: "radio", name, value, checked: index === 0 }),
          h("span", null, title, h("small", null, note)),
        ),
      ),
    ),
  );
}

/** A button that copies, and a status for screen readers. */
function copier(field) {
  const status = h("span", { class: "only-read", role: "status" });
  let timer = 0;
  const say = (said) => {
    setText(button, said);
    setText(status, said);
    clearTimeout(timer);
    timer = setTimeout(() => setText(button, "Copy"), SAID);
  };
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(field.value);
      say("Copied");
    } catch {
      field.focus(); // which selects the link for copying by hand
      say("Not copied");
    }
  };
  const button = h("button", { type: "button", onclick: copy }, "Copy");
  return [button, status];
}

function onlyHere() {
  return h(
    "div",
    { class: "only-here" },
    h(
      "p",
      null,
      `The link works on this machine only, because this page is at ${location.hostname}. Open it in another ` +
        "browser or a private window. In this browser it would replace your own login.",
    ),
    h("p", null, "To invite users on other machines, run the hub like this and invite them from its page:"),
    h(
      "pre",
      null,
      SERVING.flatMap((part) => [" ", h("span", null, part)]).slice(1),
    ),
  );
}
