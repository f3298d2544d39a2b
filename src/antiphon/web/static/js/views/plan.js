// The plan as a checklist with its progress.

import { h, replace } from "../dom.js";
import { follow } from "../follow.js";
import { safeLine, safeText } from "../text_safety.js";

const STATES = { pending: "to do", in_progress: "in progress", completed: "done", cancelled: "cancelled" };

const SHOWN = 300;

/** The progress of a plan. Cancelled steps do not count. Pure. */
export function progress(entries) {
  const wanted = entries.filter((entry) => entry.status !== "cancelled");
  return { done: wanted.filter((entry) => entry.status === "completed").length, all: wanted.length };
}

export function mount(app, element, count) {
  follow(app, ["plan"], (session) => {
    const plan = session?.plan ?? null;
    const entries = plan?.entries ?? [];
    const { done, all } = progress(entries);
    count(all ? `${done}/${all}` : "");
    if (plan && !entries.length) replace(element, prose(plan));
    else if (!entries.length)
      replace(
        element,
        h("p", { class: "nothing" }, "The agent has not made a plan yet."),
      );
    else replace(element, checklist(entries, done, all));
  });
}

function checklist(entries, done, all) {
  const mixed = entries.some((entry) => entry.priority !== "high");
  return [
    h(
      "div",
      { class: "progress" },
      h("progress", { value: done, max: Math.max(1, all), "aria-label": `${done} of ${all} done` }),
      h("span", { class: "numbers", "aria-hidden": "true" }, `${done} of ${all}`),
    ),
    h(
      "ol",
      { class: "plan" },
      entries.slice(0, SHOWN).map((entry) => step(entry, mixed)),
    ),
    entries.length > SHOWN ? h("p", { class: "note" }, `and ${entries.length - SHOWN} more`) : null,
  ];
}

function step(entry, mixed) {
  return h(
    "li",
    { class: Object.hasOwn(STATES, entry.status) ? entry.status : "pending" },
    h("span", { class: "tick", "aria-hidden": "true" }),
    h(
      "span",
      null,
      safeText(String(entry.content ?? "").slice(0, 2000)),
      entry.priority === "high" && mixed ? h("small", null, " high") : null,
      h("span", { class: "only-read" }, `, ${STATES[entry.status] ?? safeLine(entry.status, 40)}`),
    ),
  );
}

/** A plan that is a text or a file. */
function prose(plan) {
  const text = plan.content ?? plan.markdown ?? plan.text ?? plan.uri ?? "";
  return h("pre", { class: "plain" }, safeText(String(text).slice(0, 20_000)));
}
