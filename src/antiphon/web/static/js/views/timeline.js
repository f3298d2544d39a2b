// The timeline: a chart in lanes, and a list.

import { h, replace } from "../dom.js";
import { follow } from "../follow.js";
import { lengthOf, momentsOf } from "../timeline_layout.js";
import { safeLine } from "../text_safety.js";
import { clock, lasting } from "../words.js";
import { isOpen, onPanels } from "./panels.js";
import { Chart } from "./timeline_chart.js";
import { Moments } from "./timeline_list.js";

const DRAWN = 1500;
const EVERY = 1000;
const ICONS = { prompt: "prompt", turn: "clock", question: "question" };

/** An item as text. Pure. */
export function told(item, now) {
  const who = item.by?.name ? safeLine(item.by.name, 64) : null;
  const what =
    { prompt: "Prompt", turn: "Turn", tool: "Tool call", question: "Question" }[item.kind] ?? item.kind;
  const from = item.kind === "prompt" && who ? ` by ${who}` : "";
  const length = lengthOf(item, now);
  const took =
    item.kind === "prompt" ? (length < 1000 ? null : `waited ${lasting(length)}`) : lasting(length);
  return [
    `${what}${from}: ${safeLine(item.title ?? "", 160) || "untitled"}`,
    clock(item.start),
    took,
    ending(item, who),
    requestOf(item),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** The id of the prompt request, as JSON: `2` and `"2"` are two ids. */
function requestOf(item) {
  const id = item.promptRequestId ?? null;
  return id === null ? null : `request ${safeLine(JSON.stringify(id), 80)}`;
}

function ending(item, who) {
  if (item.end === null) return item.kind === "prompt" ? "waiting" : "so far";
  if (item.kind === "prompt") return item.status === "accepted" ? null : safeLine(item.status ?? "", 40);
  if (item.status === "end_turn") return null;
  const outcome = item.outcome ? `: ${safeLine(item.outcome, 60)}` : "";
  const by = item.kind === "question" && who ? ` by ${who}${outcome}` : "";
  return `${safeLine(String(item.status ?? ""), 40).replaceAll("_", " ")}${by}`;
}

export function mount(app, element, count) {
  const detail = h("p", { class: "chart-detail", "aria-hidden": "true" });
  const nothing = h(
    "p",
    { class: "nothing" },
    "Nothing has happened yet. Turns, tool calls and waiting times are shown here.",
  );
  let items = [];
  let ahead = 0;
  let chosen = false;
  let stale = true;
  let fresh = true;
  let asking = false;
  let next = 0;

  const reveal = (item) => {
    const id = item.toolCallId ?? item.messageId ?? null;
    if (id !== null) app.emit("reveal", { id });
  };
  const saying = { told: (item) => told(item, Date.now() + ahead), reveal };
  const iconOf = (item) => {
    if (item.kind !== "tool") return ICONS[item.kind];
    return app.session?.fold.tool(item.toolCallId)?.toolKind ?? "other";
  };
  const chart = new Chart({ ...saying, detail });
  const list = new Moments({ ...saying, iconOf });
  const overview = h("div", { class: "overview" }, chart.element, detail);
  replace(element, nothing, overview, list.element);

  const draw = () => {
    const now = Date.now() + ahead;
    const shown = items.filter((item) => item.kind !== "client");
    const none = shown.length === 0;
    nothing.hidden = !none;
    overview.hidden = list.element.hidden = none;
    count("");
    if (none) return;
    const atEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - 4;
    const drawn = shown.slice(-DRAWN);
    chart.show(
      drawn,
      now,
      `${clock(Math.min(...drawn.map((item) => item.start)))} to ${
        drawn.some((item) => item.end === null) ? "now" : clock(Math.max(...drawn.map((item) => item.end)))
      }`,
    );
    list.show(momentsOf(shown), now);
    if (atEnd || fresh) element.scrollTop = element.scrollHeight;
    fresh = false;
  };

  const isSeen = () => chosen && isOpen("side") && !document.hidden;
  const refresh = async () => {
    const session = app.session;
    if (session === null || session.starting || asking || !isSeen()) return;
    asking = true;
    stale = false;
    const began = performance.now();
    try {
      const answer = await app.call("_antiphon/timeline", { sessionId: session.id });
      if (app.session === session && Array.isArray(answer?.items)) {
        items = answer.items;
        ahead = (answer.now ?? Date.now()) - Date.now();
      }
    } catch {
      // Not connected, or the hub has no timeline: keep the items, and try again later.
    }
    asking = false;
    draw();
    // A long session takes the hub time, so it is requested less often.
    next = performance.now() + Math.max(EVERY, 10 * (performance.now() - began));
  };
  const tick = () => {
    if (app.session === null || !isSeen()) return;
    if (stale && performance.now() >= next) refresh();
    else if (items.some((item) => item.end === null)) draw();
  };
  let before = null;
  follow(app, ["state", "files", "questions", "queue"], (session) => {
    stale = true;
    if (session === before) return;
    before = session;
    items = [];
    next = 0;
    fresh = true;
    list.forget();
    draw();
    refresh();
  });
  onPanels(tick);
  setInterval(tick, 500);
  return (isChosen) => {
    chosen = isChosen;
    fresh ||= isChosen;
    refresh();
  };
}
