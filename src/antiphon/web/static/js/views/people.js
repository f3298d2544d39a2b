// The clients of the session, and the name of this user.

import { h, replace, setText } from "../dom.js";
import { follow } from "../follow.js";
import { icon } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { ago, clock } from "../words.js";
import { face } from "./header.js";
import { invite, mayInvite } from "./invite.js";
import { usageWords } from "./usage.js";

const SHOWN = 200;

export function mount(app, element, count) {
  const list = h("ul", { class: "people" });
  const usage = h("p", { class: "note" });
  const field = h("input", { id: "my-name", maxlength: 64, autocomplete: "nickname", value: app.me.name });
  const save = h("button", { type: "submit" }, "Save");
  const form = h(
    "form",
    {
      class: "my-name",
      onsubmit: (event) => {
        event.preventDefault();
        const name = field.value.trim();
        if (!name) return;
        app.setName(name);
        app.emit("told", {
          title: `Your name is now ${safeLine(name, 64)}`,
          message: "Other users see it with your prompts.",
        });
      },
    },
    h("label", { for: "my-name" }, "Your name"),
    h("div", null, field, save),
  );
  const inviting = h(
    "button",
    { type: "button", class: "invite", hidden: true, onclick: () => invite(app) },
    icon("add"),
    "Invite…",
  );
  replace(element, list, inviting, form, usage);
  app.on("link", () => (inviting.hidden = !mayInvite(app)));

  const show = (session) => {
    const clients = session?.clients ?? [];
    const now = Date.now();
    count(clients.length > 1 ? String(clients.length) : "");
    replace(
      list,
      clients
        .slice(0, SHOWN)
        .map((client) =>
          h(
            "li",
            null,
            face(client),
            h(
              "span",
              { class: "person" },
              safeLine(client.name, 64),
              client.you ? h("small", null, " you") : null,
            ),
            h(
              "small",
              { title: client.joinedAt ? clock(client.joinedAt) : null },
              since(client.joinedAt, now),
              client.version ? ` · ${safeLine(String(client.version), 24)}` : null,
            ),
          ),
        ),
    );
    setText(usage, session?.usage ? `Context: ${usageWords(session.usage)}.` : "");
  };
  follow(app, ["presence", "usage"], show);
  setInterval(() => show(app.session), 60_000);
}

/** How long a client has been attached. Pure. */
export function since(joinedAt, now) {
  const words = ago(joinedAt, now);
  if (!words) return "here";
  return words === "now"
    ? "came just now"
    : / (min|h|d)$/.test(words)
      ? `here for ${words}`
      : `since ${words}`;
}
