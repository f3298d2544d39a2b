// The hubs of a cluster, for owners: a button below the sessions, and a dialog.

import { ask } from "../dialog.js";
import { h, replace } from "../dom.js";
import { icon } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { counted } from "../words.js";
import { tell } from "./toasts.js";

/** Whether this user may see the hubs: only owners of all sessions, and only on a cluster. */
export function maySeeHubs(app) {
  return app.role === "owner" && app.only === null && app.offers.hubs === true;
}

/** The facts of a hub, as one line. Pure. */
export function hubFacts({ address, sessions, clients, version }) {
  const facts = [address, counted(sessions ?? 0, "session"), counted(clients ?? 0, "client"), version];
  return facts.filter(Boolean).map((fact) => safeLine(String(fact), 120)).join(" · ");
}

export function hubsButton(app) {
  const show = async () => {
    try {
      showHubs((await app.call("_antiphon/hubs", {})).hubs);
    } catch (error) {
      tell(app, "The hubs cannot be shown", error);
    }
  };
  const button = h(
    "button",
    { type: "button", class: "quiet hubs-button", hidden: true, onclick: show },
    icon("system"),
    "Hubs",
  );
  const update = () => {
    button.hidden = !maySeeHubs(app);
  };
  app.on("link", update);
  app.on("sessions", update);
  return button;
}

function showHubs(hubs) {
  const list = h("ul", { class: "hubs" });
  replace(list, hubs.map(row));
  return ask({ title: "Hubs", body: () => list });
}

function row(hub) {
  const name = safeLine(hub.label ?? "", 80) || "Unnamed hub";
  return h(
    "li",
    null,
    h("strong", null, hub.you ? `${name} (this hub)` : name),
    h("small", null, hubFacts(hub)),
  );
}
