// When what happened: an overview in lanes, fitted to the width, and the same as a list.

import { h, replace } from "../dom.js";
import { follow } from "../following.js";
import { icon } from "../icons.js";
import { lengthOf, momentsOf } from "../timeline_layout.js";
import { visibleLine } from "../visible.js";
import { clock, hour, lasting } from "../words.js";
import { Chart } from "./timeline_chart.js";

const LISTED = 150;
const DRAWN = 1500;

/** One of them in words. Pure. */
export function told(item, now) {
  const who = item.by?.name ? visibleLine(item.by.name, 64) : null;
  const what =
    { prompt: "Prompt", turn: "Turn", tool: "Tool call", question: "Question" }[item.kind] ?? item.kind;
  const from = item.kind === "prompt" && who ? ` by ${who}` : "";
  const length = lengthOf(item, now);
  const took =
    item.kind === "prompt" ? (length < 1000 ? null : `waited ${lasting(length)}`) : lasting(length);
  return [
    `${what}${from}: ${visibleLine(item.title ?? "", 160) || "untitled"}`,
    clock(item.start),
    took,
    ending(item, who),
  ]
    .filter(Boolean)
    .join(" · ");
}

function ending(item, who) {
  if (item.end === null) return item.kind === "prompt" ? "waits" : "so far";
  if (item.kind === "prompt") return item.status === "accepted" ? null : visibleLine(item.status ?? "", 40);
  if (item.status === "end_turn") return null;
  const outcome = item.outcome ? `: ${visibleLine(item.outcome, 60)}` : "";
  const by = item.kind === "question" && who ? ` by ${who}${outcome}` : "";
  return `${visibleLine(String(item.status ?? ""), 40).replaceAll("_", " ")}${by}`;
}

export function mount(app, element, count) {
  const detail = h("p", { class: "chart-detail", "aria-hidden": "true" });
  const list = h("ol", { class: "moments" });
  const nothing = h(
    "p",
    { class: "nothing" },
    "Nothing has happened yet. Turns, tools and waiting times stand here.",
  );
  let items = [];
  let ahead = 0;
  let visibleNow = false;
  let all = false;
  let asked = 0;
  let timer = 0;

  const reveal = (item) => {
    const id = item.toolCallId ?? item.messageId ?? null;
    if (id !== null) app.emit("reveal", { id });
  };
  const chart = new Chart({ told: (item) => told(item, Date.now() + ahead), reveal, detail });
  replace(element, nothing, chart.element, detail, list);

  const draw = () => {
    const now = Date.now() + ahead;
    const shown = items.filter((item) => item.kind !== "client");
    const none = shown.length === 0;
    nothing.hidden = !none;
    chart.element.hidden = detail.hidden = list.hidden = none;
    count("");
    if (none) return;
    const drawn = shown.slice(-DRAWN);
    chart.show(
      drawn,
      now,
      `${clock(Math.min(...drawn.map((item) => item.start)))} to ${
        drawn.some((item) => item.end === null) ? "now" : clock(Math.max(...drawn.map((item) => item.end)))
      }`,
    );
    drawList(list, momentsOf(shown), now, all ? Infinity : LISTED, reveal, () => {
      all = true;
      draw();
    });
  };

  const refresh = async () => {
    clearTimeout(timer);
    const session = app.session;
    if (!visibleNow || session === null) return;
    const mine = ++asked;
    try {
      const answer = await app.timeline(session.id);
      if (mine !== asked || !Array.isArray(answer?.items)) return;
      items = answer.items;
      ahead = (answer.now ?? Date.now()) - Date.now();
    } catch {
      if (mine !== asked) return;
    }
    draw();
    if (session.state !== "idle") timer = setTimeout(refresh, 1000);
  };
  let soon = 0;
  let before = null;
  follow(app, ["state", "files", "questions"], (session) => {
    if (session !== before) {
      before = session;
      items = [];
      all = false;
      draw();
    }
    clearTimeout(soon);
    soon = setTimeout(refresh, 150);
  });
  return (chosen) => {
    visibleNow = chosen;
    refresh();
  };
}

const ICONS = { prompt: "prompt", turn: "clock", tool: "execute", question: "question" };

/** What an elicitation was answered with, in words. */
const OUTCOMES = { accept: "answered", decline: "declined", cancel: "not now" };

/** A moment as the list says it: whose prompt, where there are several people. Pure. */
export function momentWords(item, several) {
  const title = visibleLine(item.title ?? "", 120);
  const who = item.by?.name ? visibleLine(item.by.name, 40) : null;
  if (item.kind === "prompt") return { who: several ? who : null, text: title || "Prompt" };
  if (item.kind !== "question") return { who: null, text: title || "Turn" };
  if (item.end === null) return { who: null, text: "Waits for an answer" };
  const outcome = OUTCOMES[item.outcome] ?? visibleLine(item.outcome ?? String(item.status ?? "ended"), 60);
  return { who: null, text: `Waited: ${outcome}${several && who ? ` by ${who}` : ""}` };
}

function drawList(list, moments, now, limit, reveal, showAll) {
  const latest = moments.slice(-Math.min(limit, moments.length));
  const more = moments.length - latest.length;
  const several = new Set(moments.map(({ item }) => item.by?.clientId).filter(Boolean)).size > 1;
  replace(
    list,
    more
      ? h(
          "li",
          null,
          h("button", { type: "button", class: "quiet more", onclick: showAll }, `Show ${more} earlier`),
        )
      : null,
    latest.map(({ item, turn }) => moment(item, turn ?? item, now, several, reveal)),
  );
}

function moment(item, timed, now, several, reveal) {
  const { who, text } = momentWords(item, several);
  const state = `was-${String(timed.status).replace(/\W/g, "_")}`;
  return h(
    "li",
    { class: [`of-${item.kind}`, state, timed.end === null && "open"] },
    h(
      "button",
      { type: "button", title: told(timed, now), onclick: () => reveal(item) },
      icon(ICONS[item.kind] ?? "other"),
      h("span", { class: "moment" }, who ? h("b", null, `${who}: `) : null, text),
      h(
        "span",
        { class: "numbers" },
        timed.kind === "prompt" ? hour(item.start) : lasting(lengthOf(timed, now)),
      ),
    ),
  );
}
