// Questions of the agent as cards above the composer. A card shows who answered, and disappears.

import { h, replace, setText } from "../dom.js";
import { follow } from "../follow.js";
import { safeLine } from "../text_safety.js";
import { elicitationCard } from "./elicitation.js";
import { permissionCard } from "./permission.js";
import { tell } from "./toasts.js";
import { causeOf } from "./transcript/end.js";

const ACTIONS = { decline: "declined", cancel: "not now" };

/** How a question ended, as one line. Pure. */
export function endOf(question, me) {
  const who =
    question.by?.clientId !== undefined && question.by.clientId === me
      ? "you"
      : safeLine(question.by?.name ?? "", 64);
  if (question.state === "expired") {
    const cause = causeOf(question.cause);
    return `Not answered${cause ? `: ${cause}` : " in time"}. Nothing was allowed.`;
  }
  if (question.state === "cancelled") return who ? `Cancelled by ${who}.` : "The question was withdrawn.";
  const what = question.outcomeName
    ? safeLine(question.outcomeName, 80)
    : (ACTIONS[question.outcome] ?? null);
  return `Answered${who ? ` by ${who}` : ""}${what ? `: ${what}` : ""}`;
}

/** Whether this page answered a question, so that it needs no note. Pure. */
export function isMine(question, me) {
  return question.state === "answered" && question.by?.clientId !== undefined && question.by.clientId === me;
}

export function mount(app, element) {
  const heard = h("p", { class: "only-read", role: "status", "aria-live": "polite" });
  const list = h("div", { class: "questions" });
  replace(element, h("h2", { class: "only-read" }, "Questions"), heard, list);
  const cards = new Map();
  let shown = null;

  follow(app, ["questions", "files"], (session) => {
    if (session !== shown) {
      cards.clear();
      replace(list);
      shown = session;
    }
    const questions = (session?.questions ?? []).filter((question) => !isMine(question, app.me.clientId));
    element.hidden = questions.length === 0;
    for (const [id, card] of cards) {
      if (questions.some((question) => question.id === id)) continue;
      card.element.remove();
      cards.delete(id);
    }
    for (const question of questions) {
      let card = cards.get(question.id);
      if (!card || card.drawn !== keyOf(question)) {
        const made = make(app, session, question);
        if (card) card.element.replaceWith(made.element);
        else list.append(made.element);
        cards.set(question.id, made);
        if (!card) setText(heard, `The agent asks: ${made.name}`);
        else if (question.state !== "open") setText(heard, endOf(question, app.me.clientId));
        card = made;
      }
      card.refresh?.();
    }
  });
}

const keyOf = (question) => `${question.state} ${question.mine} ${question.options?.length} ${question.kind}`;

function make(app, session, question) {
  const id = `question-${cssSafe(question.id)}`;
  const made =
    question.state !== "open"
      ? ended(app, question)
      : question.kind === "elicitation"
        ? elicitationCard(app, session, question, answerWith)
        : permissionCard(app, session, question, answerWith);
  made.element.id = id;
  made.element.dataset.question = question.id;
  return { ...made, drawn: keyOf(question) };

  async function answerWith(answer) {
    const inside = made.element.contains(document.activeElement);
    made.element.classList.add("sending");
    made.element.inert = true;
    try {
      await session.answer(question.id, answer);
      // Not the composer, where the key that answers the next question would be typed.
      if (inside) document.getElementById("main").focus({ preventScroll: true });
    } catch (error) {
      tell(app, "Your answer was not accepted", error);
    } finally {
      made.element.inert = false;
      made.element.classList.remove("sending");
    }
  }
}

function ended(app, question) {
  const name = safeLine(question.title ?? question.message ?? "A question", 160);
  const element = h(
    "section",
    { class: "question over", "aria-label": name },
    h("p", null, h("strong", null, name), h("span", null, endOf(question, app.me.clientId))),
  );
  return { element, name };
}

const cssSafe = (id) => String(id).replace(/[^\w-]/g, "_");
