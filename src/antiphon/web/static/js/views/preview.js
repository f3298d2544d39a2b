// A preview of what a permission is for: the command, the diff, or the input of the tool.

import { h } from "../dom.js";
import { safeLine, safeText } from "../text_safety.js";
import { within } from "../words.js";

const CUT = 4000;
const LINES = 40;
const NEAR = 3;

/** The command of a question, or of the input of its tool call. Pure. */
export function commandOf(question, call) {
  if (question.command?.command) return question.command.command;
  const given = call?.rawInput;
  const command = given && typeof given === "object" ? (given.command ?? given.cmd) : null;
  if (Array.isArray(command)) return command.join(" ");
  return typeof command === "string" ? command : null;
}

/**
 * The lines of a patch that change something or stand beside it: what is in its hunks, which `@@` begins.
 * Pure.
 */
export function patchLines(text) {
  const shown = [];
  let left = 0;
  for (const line of text.split("\n")) {
    const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (hunk && left <= 0) {
      left = Number(hunk[1] ?? 1) + Number(hunk[2] ?? 1);
      shown.push("@");
    } else if (left > 0 && /^[ +-]|^$/.test(line)) {
      left -= line[0] === "+" || line[0] === "-" ? 1 : 2;
      shown.push(line);
    }
  }
  return shown;
}

/** Of these lines, those near a change; an `@` stands for each part left out, and none ends empty. Pure. */
export function nearChanges(lines, around = NEAR) {
  const changes = (line) => line !== undefined && (line[0] === "+" || line[0] === "-");
  const near = lines.map((line, at) =>
    line !== "@" && lines.slice(Math.max(0, at - around), at + around + 1).some(changes) ? line : "@");
  const edge = (at, step) => {
    let to = at;
    while (near[to] !== undefined && near[to] !== "@" && !near[to].trim()) to += step;
    return near[to] === undefined || near[to] === "@";
  };
  const kept = near.map((line, at) => (line.trim() || !(edge(at, -1) || edge(at, 1)) ? line : "@"));
  const last = kept.findLastIndex((line) => line !== "@");
  return kept.filter((line, at) => line !== "@" || (at < last && kept[at - 1] !== "@"));
}

export function preview(session, question, call) {
  const parts = [];
  const command = commandOf(question, call);
  if (command)
    parts.push(
      h(
        "pre",
        { class: "command" },
        h("span", { "aria-hidden": "true" }, "$ "),
        safeText(command.slice(0, CUT)),
      ),
    );
  for (const part of call?.content ?? []) {
    if (part?.type === "diff") parts.push(change(part, session.cwd));
    else if (part?.type === "content" && part.content?.type === "text" && part.content.text.trim()) {
      parts.push(h("pre", { class: "plain" }, safeText(part.content.text.slice(0, CUT))));
    }
  }
  const given = call?.rawInput;
  if (!parts.length && given && typeof given === "object" && Object.keys(given).length) {
    parts.push(h("pre", { class: "plain" }, safeText(JSON.stringify(given, null, 2).slice(0, CUT))));
  }
  return parts;
}

function change(part, cwd) {
  const paths = (part.changes ?? []).map((each) => each?.path).filter(Boolean);
  const lines = nearChanges(patchLines(part.patch?.text ?? ""));
  const shown = lines.slice(0, LINES);
  return h(
    "figure",
    { class: "diff-preview" },
    h("figcaption", null, paths.map((path) => safeLine(within(path, cwd), 200)).join(", ")),
    shown.length
      ? h(
          "pre",
          null,
          shown.map((line) => h("span", { class: sign(line) }, safeText(line.slice(0, 400)) || " ")),
        )
      : null,
    lines.length > LINES
      ? h("p", { class: "note" }, `and ${lines.length - LINES} more lines, in the transcript`)
      : null,
  );
}

const sign = (line) => ({ "+": "add", "-": "del", "@": "hunk" })[line[0]] ?? "same";
