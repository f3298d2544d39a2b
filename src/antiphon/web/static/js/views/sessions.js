// The list of sessions with their states, with a search field and arrow keys.

import { confirmed } from "../dialog.js";
import { h, on, replace, setLabel, setText } from "../dom.js";
import { icon, iconButton, mark } from "../icons.js";
import { keep } from "../storage.js";
import { safeLine } from "../text_safety.js";
import { ago, counted, shortPath } from "../words.js";
import { hubsButton } from "./hubs.js";
import { newSession } from "./new_session.js";
import { isDrawer, setPanel } from "./panels.js";
import { stateDot, stateOf } from "./state.js";
import { tell } from "./toasts.js";

const SHOWN = 300;
/** States that a row shows as text. */
const STANDS_OUT = new Set(["requires_action", "damaged", "newer"]);

/** The sessions with every word of the search in title, folder, agent or id. Pure. */
export function found(entries, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter((entry) => {
    const text = [entry.title, entry.cwd, entry.agent, entry.sessionId].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Sort sessions: those that wait for an answer first, then the latest. Pure. */
export function arranged(entries) {
  const rank = (entry) => (entry.state === "requires_action" ? 0 : 1);
  const time = (entry) => Date.parse(entry.updatedAt ?? "") || 0;
  return [...entries].sort((one, two) => rank(one) - rank(two) || time(two) - time(one));
}

export function mount(app, element) {
  const search = h("input", {
    type: "search",
    id: "find",
    placeholder: "Find a session",
    "aria-label": "Find a session",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => show(),
  });
  const list = h("ul", { class: "session-list" });
  const rest = h("p", { class: "note rest", hidden: true });
  const foot = h("p", { class: "only-read", role: "status" });
  const begin = iconButton("add", "New session", () => newSession(app), { title: "New session (n)" });
  const rows = new Map();

  replace(
    element,
    h("div", { class: "brand" }, mark(), h("span", null, "Antiphon"), begin),
    h("div", { class: "find" }, icon("search"), search, h("kbd", { "aria-hidden": "true" }, "/")),
    list,
    rest,
    foot,
    hubsButton(app),
  );

  const show = () => {
    const all = arranged(found(app.sessions, search.value));
    const shown = all.slice(0, SHOWN);
    const now = Date.now();
    begin.hidden = !app.begins;
    const ids = new Set(shown.map((entry) => entry.sessionId));
    for (const [id, row] of rows) {
      if (ids.has(id)) continue;
      row.remove();
      rows.delete(id);
    }
    shown.forEach((entry, index) => {
      if (!rows.has(entry.sessionId)) rows.set(entry.sessionId, makeRow(app, entry.sessionId));
      const row = rows.get(entry.sessionId);
      paint(row, entry, entry.sessionId === app.session?.id, now, app);
      if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
    });
    element.classList.toggle("none", shown.length === 0);
    list.dataset.empty = search.value ? "No sessions match." : "No sessions yet.";
    setText(foot, search.value ? `${counted(all.length, "session")} found` : "");
    rest.hidden = all.length === shown.length;
    setText(rest, `and ${all.length - shown.length} more: search to find them`);
  };

  on(element, "keydown", (event) => {
    const all = [...list.querySelectorAll(".session")];
    const at = all.indexOf(document.activeElement);
    if (event.key === "ArrowDown") all.at(Math.min(at + 1, all.length - 1))?.focus();
    else if (event.key === "ArrowUp") at <= 0 ? search.focus() : all[at - 1].focus();
    else if (event.key === "Home" && at >= 0) all[0].focus();
    else if (event.key === "End" && at >= 0) all.at(-1).focus();
    else if (event.key === "Delete" && at >= 0) all[at].parentElement.querySelector(".remove")?.click();
    else if (event.key === "Enter" && document.activeElement === search) all[0]?.click();
    else if (event.key === "Escape" && search.value) {
      search.value = "";
      show();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  app.on("sessions", show);
  app.on("session", show);
  setInterval(show, 30_000);
  show();
}

function makeRow(app, id) {
  const open = h("button", {
    type: "button",
    class: "session",
    onclick: async () => {
      if (isDrawer("sessions")) setPanel("sessions", false);
      try {
        await app.open(id);
      } catch (error) {
        tell(app, "The session was not opened", error);
      }
    },
  });
  const remove = h(
    "button",
    {
      type: "button",
      class: "remove quiet icon-only",
      tabindex: "-1",
      title: "Delete",
      onclick: () => removeSession(app, id),
    },
    icon("delete"),
  );
  return h("li", null, open, remove);
}

function paint(row, entry, current, now, app) {
  const title = safeLine(entry.title ?? "", 120) || "Untitled session";
  const state = stateOf(entry.state);
  const others = entry.clients ? counted(entry.clients, "client") : null;
  const facts = [entry.agent && safeLine(entry.agent, 40), entry.cwd && shortPath(entry.cwd)].filter(
    Boolean,
  );
  const time = ago(entry.updatedAt, now);
  const drawn = JSON.stringify([title, entry.state, others, facts, time, current, app.role]);
  if (row.dataset.drawn === drawn) return;
  row.dataset.drawn = drawn;
  const [open, remove] = row.children;
  open.setAttribute("aria-current", current ? "page" : "false");
  setLabel(open, "title", safeLine(entry.cwd ?? "", 400));
  replace(
    open,
    stateDot(entry.state),
    h("span", { class: "session-title" }, title),
    h("time", { class: "session-time" }, time),
    h(
      "span",
      { class: "session-facts" },
      STANDS_OUT.has(entry.state) ? h("b", null, state.word) : facts.join(" · "),
    ),
    h("span", { class: "only-read" }, `, ${state.word}`),
    others && entry.clients > 1
      ? h(
          "span",
          { class: "session-clients", title: others },
          icon("people"),
          String(entry.clients),
          h("span", { class: "only-read" }, " clients"),
        )
      : null,
  );
  setLabel(remove, "aria-label", `Delete ${title}`);
  remove.hidden = app.role !== null && app.role !== "owner";
}

async function removeSession(app, id) {
  const entry = app.sessions.find((each) => each.sessionId === id);
  const title = safeLine(entry?.title ?? "", 120) || "this session";
  const sure = await confirmed({
    title: "Delete the session?",
    text: `“${title}” and its conversation are deleted for all users. Files that the agent changed stay.`,
    action: "Delete",
  });
  if (!sure) return;
  try {
    await app.remove(id);
    keep(`draft.${id}`, null);
  } catch (error) {
    tell(app, "The session was not deleted", error);
  }
}
