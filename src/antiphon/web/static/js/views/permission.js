// A permission request: what the agent wants to do, and the options.

import { h, replace } from "../dom.js";
import { icon } from "../icons.js";
import { safeLine, safeText } from "../text_safety.js";
import { preview } from "./preview.js";

/** What an option means, beside its own name. */
export const KINDS = {
  allow_once: { verb: "allow", says: "this time" },
  allow_always: { verb: "allow", says: "from now on" },
  reject_once: { verb: "reject", says: "this time" },
  reject_always: { verb: "reject", says: "from now on" },
};

/** What each key chooses: the same in the terminal UI and on the command line (`transcripts/answers.py`). */
const ANSWER_KEYS = { y: "allow_once", a: "allow_always", n: "reject_once", N: "reject_always" };

/** The key of each option: of the first one of each kind, "" for one that has only its number. Pure. */
export function optionKeys(kinds) {
  const keys = kinds.map((kind, at) => {
    const key = Object.keys(ANSWER_KEYS).find((each) => ANSWER_KEYS[each] === kind);
    return key && kinds.indexOf(kind) === at ? key : "";
  });
  return keys.includes("n") ? keys : keys.map((key) => (key === "N" ? "n" : key));
}

/** Whether the name of an option does not say how long it applies. Pure. */
export function needsKind(name, kind) {
  const words = name.toLowerCase();
  if (kind.endsWith("_always")) return !/always|never|every|from now|don.t ask|session|all /.test(words);
  return false;
}

export function permissionCard(app, session, question, answerWith) {
  const call = question.toolCallId
    ? session.items.find((item) => item.kind === "tool" && item.id === question.toolCallId)
    : null;
  const name = safeLine(question.title ?? call?.title ?? question.message ?? "Permission", 240);
  const shown = h("div", { class: "preview" });
  const looking = app.role === "observer";
  const options = question.options ?? [];
  const keys = optionKeys(options.map(({ kind }) => kind));
  const waits = looking
    ? "You are an observer. Other users can answer."
    : options.length === 0
      ? "Another user is asked."
      : null;
  const element = h(
    "section",
    { class: "question permission", "aria-label": `Permission: ${name}` },
    h(
      "header",
      null,
      h("span", { class: "dot waiting", "aria-hidden": "true" }),
      h("span", { class: "asks" }, "The agent asks for permission"),
      call
        ? h(
            "button",
            { type: "button", class: "quiet small", onclick: () => app.emit("reveal", { id: call.id }) },
            "Show in transcript",
          )
        : null,
    ),
    h("h3", null, name),
    question.message && question.message !== name
      ? h("p", { class: "asked" }, safeText(question.message.slice(0, 4000)))
      : null,
    shown,
    waits
      ? h("p", { class: "note" }, waits)
      : h(
          "div",
          { class: "answers", role: "group", "aria-label": "Your answer" },
          options.map((option, index) =>
            optionButton(option, index, keys[index], () => answerWith({ optionId: option.optionId })),
          ),
        ),
  );
  let version = null;
  const refresh = () => {
    const now = call?.version ?? 0;
    if (version === now) return;
    version = now;
    replace(shown, preview(session, question, call));
    shown.hidden = shown.childElementCount === 0;
  };
  refresh();
  return { element, name, refresh };
}

function optionButton(option, index, letter, run) {
  const kind = KINDS[option.kind] ?? { verb: "other", says: "" };
  const name = safeLine(option.name ?? option.optionId, 80);
  const first = option.kind === "allow_once";
  return h(
    "button",
    {
      type: "button",
      class: [kind.verb, first && "primary"],
      dataset: { key: index < 9 ? String(index + 1) : "", letter },
      onclick: run,
    },
    icon(kind.verb === "allow" ? "check" : kind.verb === "reject" ? "close" : "other"),
    h("span", null, name),
    needsKind(name, option.kind ?? "") ? h("small", null, kind.says) : null,
    keycap(index, letter),
  );
}

/** One key of an option: its letter, or its number if it has no letter. Both keys answer. */
function keycap(index, letter) {
  const shown = letter === "N" ? "⇧ n" : letter || (index < 9 ? String(index + 1) : "");
  return shown ? h("kbd", { "aria-hidden": "true" }, shown) : null;
}
