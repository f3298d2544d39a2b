// The search over the contents of all sessions: a dialog with results as one types. A result opens its session at
// the place.

import { ask } from "../dialog.js";
import { h, on, replace, setText } from "../dom.js";
import { failureLine } from "../failure.js";
import { icon, iconButton } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { ago } from "../words.js";
import { closeDrawer } from "./panels.js";
import { tell } from "./toasts.js";

const PAUSE = 150;
const LIMIT = 50;
const MOST_QUERY = 1000;
/** How long a session may take to show the place. */
const REVEAL_MS = 10_000;
const LATEST_DATE = 8.64e15;
const WHO = { user: "User", agent: "Agent", thought: "Thought", tool: "Tool call", title: "Title" };

export function canSearch(app) {
  return typeof app.offers.searchSessions === "object";
}

/** The button of the session list that opens the search. It is there if the hub can search. */
export function searchButton(app) {
  const button = iconButton("search", "Search all sessions", () => openSearch(app), {
    title: "Search the contents of all sessions (s)",
  });
  const show = () => (button.hidden = !canSearch(app));
  app.on("sessions", show);
  show();
  return button;
}

/** Matches by session, in the order of the first match of each. Pure. */
export function bySession(matches) {
  const groups = new Map();
  for (const match of matches) {
    if (!groups.has(match.sessionId)) groups.set(match.sessionId, { title: match.title, matches: [] });
    groups.get(match.sessionId).matches.push(match);
  }
  return [...groups.values()];
}

/** Marks of Markdown that say nothing in a line: around code and emphasis (the groups), below the head of a table,
 * at the end of its rows, before an item of a list and before a heading. */
const MARKED = [
  /(`+)[^`]+(\1)(?!`)|(?<![*\w])(\*{1,2})(?=[^\s*])[^*]+(?<=[^\s*])\3(?![*\w])/g,
  / ?\|(?: *:?-{2,}:? *\|)+/g,
  /\| (?=\|)/g,
  /(?<=[.:!?] )[*-] |^#{1,6} /g,
];

/** Which characters of a line are marks of Markdown. Pure. */
function marksIn(characters) {
  const line = characters.map((each) => (each.length > 1 ? "x" : each)).join(""); // an index for each character
  const marks = new Set();
  for (const found of MARKED.flatMap((marked) => [...line.matchAll(marked)])) {
    const mark = (found[1] ?? found[3])?.length ?? found[0].length;
    for (let n = 0; n < mark; n += 1) marks.add(found.index + n).add(found.index + found[0].length - 1 - n);
  }
  return marks;
}

/** A snippet as pieces, each with whether it is a hit, without marks of Markdown. Ranges count Unicode code points.
 * Pure. */
export function pieces(snippet, ranges) {
  const characters = Array.from(snippet);
  const marks = marksIn(characters);
  const found = [];
  let at = 0;
  const add = (end, hit) => {
    const text = characters.slice(at, Math.max(at, end)).filter((_, index) => !marks.has(at + index)).join("");
    if (text) found.push([text, hit]);
    at = Math.max(at, end);
  };
  for (const [start, end] of ranges) {
    add(start, false);
    add(end, true);
  }
  add(characters.length, false);
  return found;
}

/**
 * Searches as one types: the last query alone is shown, and an answer that comes late is dropped.
 * `ask(query)` resolves to the answer, `show(query, answer, error)` shows it.
 */
export class LatestSearch {
  #ask;
  #show;
  #timer = 0;
  #count = 0;

  constructor(ask, show) {
    this.#ask = ask;
    this.#show = show;
  }

  look(query, pause = PAUSE) {
    clearTimeout(this.#timer);
    this.#count += 1;
    if (!query) this.#show("", null, null);
    else this.#timer = setTimeout(() => this.#run(query, this.#count), pause);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#count += 1;
  }

  async #run(query, count) {
    let answer = null;
    let failed = null;
    try {
      answer = await this.#ask(query);
    } catch (error) {
      failed = error;
    }
    if (count === this.#count) this.#show(query, answer, failed);
  }
}

/** Open the search. Resolves when it is closed, after the chosen session was opened. */
export async function openSearch(app, query = "") {
  if (!canSearch(app) || document.querySelector("dialog[open]")) return;
  let latest;
  const match = await ask({
    title: "Search all sessions",
    wide: true,
    body: (close) => {
      const [view, searching] = form(app, query, close);
      latest = searching;
      return view;
    },
  });
  latest.stop();
  if (match) await openAt(app, match);
}

function form(app, query, close) {
  const input = h("input", {
    type: "search",
    value: query,
    autofocus: true,
    maxlength: MOST_QUERY,
    placeholder: "Words, or a “quoted phrase”",
    "aria-label": "Search the contents of all sessions",
    "aria-controls": "search-results",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => latest.look(input.value.trim()),
  });
  const count = h("p", { class: "note", role: "status" });
  const results = h("div", { class: "search-results", id: "search-results" });
  const latest = new LatestSearch(
    (words) => app.call("_antiphon/search_sessions", { query: words, limit: LIMIT }),
    (words, answer, error) => {
      const matches = answer?.matches ?? [];
      setText(count, error ? `The search failed: ${failureLine(error)}` : words ? summary(answer) : "");
      replace(results, bySession(matches).map((group) => section(group, close)));
      results.scrollTop = 0;
    },
  );
  const view = h("form", {
    class: "search",
    onsubmit: (event) => {
      event.preventDefault();
      results.querySelector("button")?.click();
    },
  }, h("div", { class: "search-field" }, icon("search"), input), count, results);
  on(view, "keydown", (event) => moveFocus(event, input, results));
  if (query) latest.look(query, 0);
  return [view, latest];
}

function summary({ matches, nextCursor, incomplete }) {
  const found = matches.length ? `${matches.length}${nextCursor ? "+" : ""} found` : "Nothing found";
  return incomplete ? `${found}. Some sessions are not indexed yet.` : found;
}

function section({ title, matches }, close) {
  return h(
    "section",
    null,
    h("h3", null, safeLine(title ?? "", 120) || "Untitled"),
    matches.map((match) =>
      h(
        "button",
        { type: "button", class: "search-match", onclick: () => close(match) },
        h("span", { class: "search-about" }, `${WHO[match.role] ?? "Text"} · ${timeOf(match.at)}`),
        h(
          "span",
          { class: "search-text" },
          pieces(match.snippet, match.ranges).map(([text, hit]) => (hit ? h("mark", null, text) : text)),
        ),
      ),
    ),
  );
}

function timeOf(at) {
  return Number.isFinite(at) && Math.abs(at) < LATEST_DATE ? ago(new Date(at).toISOString(), Date.now()) : "";
}

function moveFocus(event, input, results) {
  const all = [input, ...results.querySelectorAll("button")];
  const at = all.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || at < 0) return;
  event.preventDefault();
  all[Math.max(0, Math.min(at + step, all.length - 1))].focus();
}

/** Open a session at a match, and mark the place. */
export async function openAt(app, match) {
  closeDrawer();
  try {
    await app.open(match.sessionId);
  } catch (error) {
    tell(app, "The session was not opened", error);
    return;
  }
  const id = match.messageId ?? match.toolCallId;
  const until = performance.now() + REVEAL_MS;
  const place = () => document.querySelector("#transcript .row.revealed");
  place()?.classList.remove("revealed");
  const reveal = () => {
    if (!id || app.session?.id !== match.sessionId || performance.now() > until) return;
    app.emit("reveal", { id });
    // The transcript draws at its own pace, so the place may not be there yet.
    requestAnimationFrame(() => requestAnimationFrame(() => place() || reveal()));
  };
  requestAnimationFrame(reveal);
}
