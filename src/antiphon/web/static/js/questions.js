// The questions of a session: those that this page may answer, and those that it only knows of. Each ends once,
// and stays for a moment to show who answered.

const SHOWN = 6000;
/** Milliseconds after a reconnect in which the hub repeats open questions. */
const GRACE = 1500;

export class Questions {
  all = [];
  #changed;
  #asked = new Map();

  constructor(changed) {
    this.#changed = changed;
  }

  get(id) {
    return this.all.find((question) => question.id === id) ?? null;
  }

  /** Handle a question of the hub. Resolves to the answer; the signal withdraws the question. */
  ask(question, signal) {
    this.#set(question.id, { ...question, mine: true, state: "open", stale: false });
    return new Promise((resolve) => {
      this.#asked.set(question.id, resolve);
      signal.addEventListener("abort", () => {
        this.#asked.delete(question.id);
        const known = this.get(question.id);
        if (!known) return;
        known.mine = false;
        // A lost connection withdraws nothing, and an answer was reported before.
        const takenBack = signal.reason?.code !== undefined && known.state === "open";
        if (takenBack) this.#end(question.id, { state: "cancelled" });
        else this.#changed();
      });
    });
  }

  /** Answer the request itself, if the hub has no other way. Returns whether there was a request. */
  reply(id, answer) {
    const resolve = this.#asked.get(id);
    resolve?.(answer);
    this.#end(id, { state: "answered" });
    return resolve !== undefined;
  }

  /** Apply an `_antiphon_question` update. */
  hear({ questionId, toolCallId, state, by, outcome, optionName, cause }) {
    if (state === "opened") {
      const known = this.get(questionId) ?? { kind: "permission", title: null, mine: false };
      const about = toolCallId ?? known.toolCallId;
      this.#set(questionId, { ...known, toolCallId: about, state: "open", stale: false });
    } else if (this.get(questionId)) {
      const how = { by: by ?? null, outcome: outcome ?? null, outcomeName: optionName ?? null,
        cause: cause ?? null };
      this.#end(questionId, { state, ...how });
    }
  }

  /** Handle a reconnect: the hub repeats open questions, and all others have ended. `told()` resolves to how
   * they ended, by their ids. */
  returned(told) {
    for (const question of this.all) if (question.state === "open") question.stale = true;
    if (!this.all.length) return;
    setTimeout(async () => {
      const stale = this.all.filter((question) => question.stale && question.state === "open");
      if (!stale.length) return;
      const ends = await told().catch(() => new Map()); // then it is not known how they ended
      for (const { id } of stale) this.#end(id, ends.get(id) ?? { state: "cancelled" });
    }, GRACE);
  }

  #set(id, question) {
    const known = this.get(id);
    if (known && known.state !== "open") return;
    if (known) Object.assign(known, question);
    else this.all.push({ id, ...question });
    this.#changed();
  }

  #end(id, how) {
    const question = this.get(id);
    if (!question || question.state !== "open") return;
    Object.assign(question, how, { mine: false });
    this.#changed();
    setTimeout(() => {
      this.all = this.all.filter((other) => other !== question);
      this.#changed();
    }, SHOWN);
  }
}

/** Read the params of a permission request or an elicitation. */
export function readQuestion(method, params, fallback) {
  const meta = params._meta?.antiphon;
  const id = typeof meta?.questionId === "string" ? meta.questionId : fallback;
  if (method === "elicitation/create") {
    return { id, kind: "elicitation", toolCallId: params.toolCallId ?? null,
      title: params.requestedSchema?.title ?? null,
      message: params.message ?? "", schema: params.requestedSchema ?? null, url: params.url ?? null,
      mode: params.mode, elicitationId: params.elicitationId ?? null };
  }
  const subject = params.subject ?? {};
  return { id, kind: "permission", toolCallId: subject.toolCall?.toolCallId ?? subject.toolCallId ?? null,
    title: params.title, message: params.description ?? null, options: params.options ?? [],
    command: subject.type === "command" ? { command: subject.command, cwd: subject.cwd } : null };
}
