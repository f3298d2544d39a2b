// The list of sessions with their states, with a search field and arrow keys.

import { h, on, replace, setLabel, setText } from "../dom.js";
import { grouped, GROUPINGS } from "../grouping.js";
import { icon, iconButton, mark } from "../icons.js";
import { opensMenu } from "../menu.js";
import { keep, kept } from "../storage.js";
import { safeLine } from "../text_safety.js";
import { ago, counted, shortPath } from "../words.js";
import { hubsButton } from "./hubs.js";
import { newSession } from "./new_session.js";
import { isDrawer, setPanel } from "./panels.js";
import { searchButton } from "./search.js";
import { archiveSession, mayRemove, removeSession, showArchived } from "./session_acts.js";
import { stateDot, stateOf } from "./state.js";
import { UNTITLED } from "./title.js";
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
  const begin = iconButton("add", "New session", () => newSession(app), { title: "New session" });
  const look = iconButton("other", "List of sessions", null);
  const rows = new Map();
  const headings = new Headings();
  const group = (how) => {
    keep("grouping", how === "day" ? null : how);
    show();
  };
  const looks = () => [
    ...Object.entries(GROUPINGS).map(([how, label]) => ({
      label,
      checked: how === grouping(),
      run: () => group(how),
    })),
    "More",
    { label: "Archived sessions", icon: icon("archive"), run: () => showArchived(app) },
  ];

  replace(
    element,
    h("div", { class: "brand" }, mark(), h("span", null, "Antiphon"), searchButton(app), look, begin),
    h("div", { class: "find" }, icon("search"), search, h("kbd", { "aria-hidden": "true" }, "/")),
    list,
    rest,
    foot,
    hubsButton(app),
  );

  opensMenu(look, looks, { label: "List of sessions" });

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
    let index = 0;
    const put = (row) => {
      if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
      index += 1;
    };
    for (const group of grouped(shown, grouping(), now, { shortPath })) {
      put(headings.of(group));
      for (const entry of group.entries) {
        if (!rows.has(entry.sessionId)) rows.set(entry.sessionId, makeRow(app, entry.sessionId));
        const row = rows.get(entry.sessionId);
        paint(row, entry, entry.sessionId === app.session?.id, now, app);
        put(row);
      }
    }
    while (list.children.length > index) list.lastChild.remove();
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
    else if (event.key === "Delete" && at >= 0) removeFocused(app, all, at);
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

/** How the list is grouped. */
function grouping() {
  const how = kept("grouping");
  return Object.hasOwn(GROUPINGS, how) ? how : "day";
}

/** The headings of groups, which stay the same elements while the list changes. */
class Headings {
  #made = new Map();

  of({ name, title }) {
    if (!this.#made.has(name)) {
      this.#made.set(name, h("li", { class: "session-group", role: "presentation" }, h("h2", { title: title && safeLine(title, 400) }, name)));
    }
    return this.#made.get(name);
  }
}

function removeFocused(app, all, at) {
  if (!mayRemove(app)) return;
  (all[at + 1] ?? all[at - 1])?.focus();
  removeSession(app, all[at].parentElement.dataset.id);
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
  const more = h("button", { type: "button", class: "more quiet icon-only", tabindex: "-1" }, icon("other"));
  const items = () => [
    { label: "Archive", icon: icon("archive"), run: () => archiveSession(app, id) },
    { label: "Delete", icon: icon("delete"), run: () => removeSession(app, id) },
  ];
  const opens = () => {
    opensMenu(more, items, { label: "Session" }); // made when it is needed: there may be hundreds of rows
    more.click();
  };
  on(more, "click", opens, { once: true });
  return h("li", { dataset: { id } }, open, more);
}

function paint(row, entry, current, now, app) {
  const title = safeLine(entry.title ?? "", 120) || UNTITLED;
  const state = stateOf(entry.state);
  const others = entry.clients ? counted(entry.clients, "client") : null;
  const facts = [entry.agent && safeLine(entry.agent, 40), entry.cwd && shortPath(entry.cwd)];
  const time = ago(entry.updatedAt, now);
  const drawn = JSON.stringify([title, entry.state, others, facts, time, current, app.role]);
  if (row.dataset.drawn === drawn) return;
  row.dataset.drawn = drawn;
  const [open, more] = row.children;
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
      STANDS_OUT.has(entry.state) ? h("b", null, state.word) : factNodes(...facts),
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
  setLabel(more, "aria-label", `Archive or delete ${title}`);
  setLabel(more, "title", "Archive or delete");
  more.hidden = !mayRemove(app);
}

/** The agent and the folder of a session. The last part of the folder says the most: its beginning is cut first. */
function factNodes(agent, folder) {
  return [
    agent && h("span", { class: "session-agent" }, folder ? `${agent} · ` : agent),
    folder && h("span", { class: "session-folder" }, h("bdi", null, folder)),
  ];
}
