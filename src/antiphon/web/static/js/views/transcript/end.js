// The end of a turn: how long it took, why it ended if that is unusual, and a way to try again.

import { h, replace } from "../../dom.js";
import { advice } from "../../failure.js";
import { icon } from "../../icons.js";
import { safeLine, safeText } from "../../text_safety.js";
import { counted, lasting, many } from "../../words.js";

const ENDS = {
  cancelled: ["stop", "Stopped"],
  refusal: ["warning", "The agent refused"],
  max_tokens: ["warning", "The agent reached its token limit"],
  max_turn_requests: ["warning", "The agent reached its request limit"],
  error: ["warning", "The turn failed"],
};

const CAUSES = {
  hub_stopped: "the hub was stopped",
  hub_lost: "the hub ended unexpectedly",
  agent_lost: "the agent ended",
};

/** Stop reasons after which the prompt may be sent again. */
const AGAIN = new Set(["cancelled", "error", "refusal", "max_tokens", "max_turn_requests"]);

/** Milliseconds from which on the duration of a turn is shown. */
const BRIEF = 1000;

/** What cut a turn short, in words, or null. Pure. */
export function causeOf(cause) {
  return Object.hasOwn(CAUSES, cause ?? "") ? CAUSES[cause] : null;
}

/** How a turn ended, in words, or null if it ended as usual. Pure. */
export function endWords({ stopReason, error, cause }) {
  const interrupted = error?.data?.reason === "interrupted" || cause;
  if (!interrupted) return ENDS[stopReason]?.[1] ?? null;
  const why = causeOf(error?.data?.cause ?? cause);
  return why ? `The turn was interrupted: ${why}` : "The turn was interrupted";
}

/** Which questions ended with a turn, in words, or null. Pure. */
export function unansweredWords(questions) {
  if (!questions?.length) return null;
  const first = safeLine(questions[0].title || "A question", 160);
  if (questions.length === 1) return `Nobody answered the question “${first}”, so nothing was allowed.`;
  const more = counted(questions.length - 1, "more question");
  return `Nobody answered the question “${first}” and ${more}, so nothing was allowed.`;
}

export class EndView {
  constructor(item, around) {
    this.item = item;
    this.around = around;
    this.element = h("div", { class: ["end", ENDS[item.stopReason] ? item.stopReason : "well"] });
  }

  update() {
    const { stopReason, error, usage, at, since, unanswered } = this.item;
    const drawn = ENDS[stopReason]?.[0] ?? null;
    const said = endWords(this.item);
    const facts = [
      at && since && at - since >= BRIEF ? lasting(at - since) : null,
      Number.isFinite(usage?.totalTokens) ? `${many(usage.totalTokens)} tokens` : null,
      !said && stopReason && stopReason !== "end_turn" ? safeLine(stopReason, 60) : null,
    ].filter(Boolean).join(" · ");
    const open = unansweredWords(unanswered);
    this.element.hidden = !said && !facts && !open;
    const message = error?.data?.reason === "interrupted" ? "" : String(error?.message ?? "").slice(0, 2000);
    const next = error && advice(error);
    replace(this.element,
      h("p", null, drawn ? icon(drawn) : null, said ? h("span", null, said) : null,
        facts ? h("span", { class: "facts" }, facts) : null, this.#retry(stopReason)),
      message ? h("p", { class: "why" }, safeText(message)) : null,
      next ? h("p", { class: "why" }, next) : null,
      open ? h("p", { class: "why" }, open) : null);
  }

  #retry(stopReason) {
    if (!AGAIN.has(stopReason) || !this.around.resend.may) return null;
    const prompt = this.around.resend.promptBefore(this.item.index);
    if (!prompt) return null;
    return h("button", { type: "button", class: "small retry", title: this.around.resend.retryLabel,
      onclick: () => this.around.resend.retry(prompt) }, icon("retry"), "Retry");
  }
}
