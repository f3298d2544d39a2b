// One session: its fold, what this client asks of it, and who is told of changes, once per frame.

import { Emitter } from "./emitter.js";
import { SessionFold } from "./fold/session.js";
import { ours } from "./fold/content.js";
import { Questions, readQuestion } from "./questions.js";
import { LinkLost, RpcError } from "./rpc.js";

/** Frames are not drawn while the page is hidden, but titles and notifications go on. */
const HIDDEN_FRAME = 250;

export class Session extends Emitter {
  /** Whether the history is still on its way. */
  loading = true;
  /** Whether updates that come are this session's, in order. */
  listening = false;
  #app;
  #entry;
  #fold = new SessionFold();
  /** The event up to which the fold is known to be whole. */
  #cursor = null;
  #frame = null;
  #kinds = new Set();
  #questions = new Questions(() => this.#soon("questions"));
  #serial = 0;
  #asking = Promise.resolve();
  #cancels = null;

  constructor(app, entry) {
    super();
    this.#app = app;
    this.#entry = entry;
    this.id = entry.sessionId;
  }

  // The fold

  get fold() { return this.#fold; }
  get title() { return this.#fold.info.title ?? this.#entry.title ?? null; }
  get cwd() { return this.#entry.cwd ?? null; }
  get state() { return this.#fold.turn.shown; }
  get stopReason() { return this.#fold.turn.stopReason; }
  get waitingFor() { return this.#fold.waitingFor; }
  get error() { return this.#fold.turn.latest?.error ?? null; }
  get background() { return this.#fold.turn.latest?.background ?? []; }
  get items() { return this.#fold.items; }
  get plan() { return this.#fold.plan; }
  get terminals() { return this.#fold.terminals; }
  get usage() { return this.#fold.usage; }
  get commands() { return this.#fold.commands; }
  get options() { return this.#fold.options; }
  get queue() { return this.#fold.queue; }
  get clients() { return this.#fold.clients; }
  get touched() { return this.#fold.touched; }
  get questions() { return this.#questions.all; }

  /** Prompts that the hub has not confirmed yet, as they were written. */
  get unsent() {
    return this.#app.outbox.of(this.id).filter(({ params }) => params.prompt ?? params.content)
      .map(({ id, params }) => ({ id, blocks: params.prompt ?? params.content }));
  }

  /** What the list of sessions says of it. */
  describe(entry) {
    const before = `${this.title} ${this.cwd}`;
    this.#entry = { ...this.#entry, ...entry };
    if (before !== `${this.title} ${this.cwd}`) this.#soon("info");
  }

  // What comes

  /** Join it over a link, one time after the other: what comes is of the one that is under way. */
  attach(peer) {
    return this.#inTurn(() => this.#attach(peer));
  }

  #inTurn(ask) {
    this.#asking = this.#asking.catch(() => {}).then(ask);
    return this.#asking;
  }

  /** What was missed comes before the answer, or all of it. */
  async #attach(peer) {
    const before = this.#fold;
    const goOn = this.#cursor !== null;
    if (!goOn) {
      this.#fold = new SessionFold();
      this.#fold.from = 0;
      this.loading = true;
    }
    this.#fold.set("queue", "queue", { entries: [], paused: false }); // told anew if anything waits
    this.#questions.returned();
    this.listening = true;
    const how = goOn ? { historyPolicy: "after", after: this.#cursor } : { historyPolicy: "full" };
    try {
      this.#joined(await peer.request("_antiphon/attach", { sessionId: this.id, ...how }));
      if (!goOn && this.items.length) this.#recall(this.#fold);
    } catch (error) {
      this.listening = false;
      if (error instanceof RpcError && error.data?.reason === "bad_cursor") {
        this.#cursor = null;
        await this.#attach(peer);
        return;
      }
      if (error instanceof LinkLost && !goOn && before.items.length) this.#fold = before;
      throw error;
    }
  }

  #joined(answer) {
    if (!this.listening) return; // it was left on the way: what came meanwhile was not heard
    if (Number.isInteger(answer.seq)) this.#cursor = answer.seq;
    if (answer.configOptions && !this.#fold.options.length) {
      this.#fold.set("options", "options", answer.configOptions);
    }
    if (answer.availableCommands && !this.#fold.commands.length) {
      this.#fold.set("commands", "commands", answer.availableCommands);
    }
    if (Array.isArray(answer.clients)) this.#fold.set("presence", "clients", answer.clients);
    this.loading = false;
    if (this.#cancels !== null && this.#cancels === this.#fold.turnPrompt) this.cancel();
    this.#cancels = null;
    for (const kind of ["transcript", "state", "info", "queue"]) this.#soon(kind);
  }

  async #recall(fold) {
    try {
      const { items } = await this.#app.timeline(this.id);
      if (fold === this.#fold) fold.recall(items);
      this.#soon();
    } catch {
      // then it is not shown how turns ended that nobody here saw
    }
  }

  /** Another one is shown; the place is remembered, unless the history was still on its way. `left` says
   * whether that is still so when it is its turn: what is asked of one session is asked in order. */
  leave(left) {
    this.listening = false;
    if (this.loading) this.#cursor = null;
    this.#inTurn(async () => {
      if (left()) await this.#app.call("_antiphon/detach", { sessionId: this.id });
    }).catch(() => {}); // a lost link has left it, too
  }

  /** Something of the outbox was answered. */
  sent() {
    this.#soon("transcript");
  }

  receive({ update, _meta }) {
    const { seq } = ours(_meta);
    try {
      if (update?.sessionUpdate === "_antiphon_question") this.#questions.hear(update);
      else this.#fold.apply(update, this.loading ? undefined : Date.now());
    } catch (error) {
      console.warn("an update was passed over", error); // it harms nothing that was told before
    }
    // Our own updates say what is so now, and may come before the history that they belong behind.
    if (Number.isInteger(seq) && !update?.sessionUpdate?.startsWith("_antiphon_")) this.#cursor = seq;
    this.#soon();
  }

  /** `session/request_permission` or `elicitation/create`: gives the answer, once there is one. */
  asked(method, params, signal) {
    this.#serial += 1;
    const question = readQuestion(method, params, `unnamed_${this.#serial}`);
    if (params.subject?.toolCall) this.#fold.asked(params.subject.toolCall, Date.now());
    question.title ??= this.#fold.tool(question.toolCallId)?.title ?? null;
    this.#soon("questions");
    return this.#questions.ask(question, signal);
  }

  /** Views are told once per frame, however much came. */
  #soon(kind) {
    if (kind) this.#kinds.add(kind);
    if (this.#frame !== null) return;
    const show = () => {
      cancelAnimationFrame(this.#frame.frame);
      clearTimeout(this.#frame.timer);
      this.#frame = null;
      this.#show();
    };
    this.#frame = { frame: requestAnimationFrame(show), timer: setTimeout(show, HIDDEN_FRAME) };
  }

  #show() {
    const { kinds, from } = this.#fold.take();
    for (const kind of this.#kinds) kinds.add(kind);
    this.#kinds.clear();
    for (const kind of kinds) this.emit(kind, kind === "transcript" ? { from } : undefined);
  }

  // What this client asks

  /** While it works, `queue` waits where it can be edited, `steer` goes in, `interrupt` cancels first. */
  async prompt(blocks, delivery) {
    const busy = this.state !== "idle" || this.queue.entries.length > 0;
    const injects = busy && delivery !== "interrupt" && this.#app.injectModes.includes(delivery ?? "queue");
    const id = crypto.randomUUID();
    const entry = injects
      ? { method: "_antiphon/inject",
        params: { sessionId: this.id, content: blocks, mode: delivery ?? "queue", operationId: id } }
      : { method: "session/prompt",
        params: { sessionId: this.id, prompt: blocks,
          _meta: { antiphon: { operationId: id, delivery: delivery ?? "queue" } } } };
    const answered = this.#app.outbox.add({ id, sessionId: this.id, ...entry });
    this.#soon("transcript");
    return answered;
  }

  async cancel() {
    const { turnPrompt } = this.#fold;
    if (this.#app.link.state !== "online") {
      this.#cancels = turnPrompt; // once there is a link, if it is still the same turn
      return;
    }
    const which = turnPrompt ? { messageId: turnPrompt } : {}; // a cancel that comes late hits no later turn
    this.#app.notify("session/cancel", {
      sessionId: this.id, _meta: { antiphon: { operationId: crypto.randomUUID(), ...which } },
    });
  }

  /** With what the request would be answered with: an outcome, or an action and content. */
  async answer(questionId, answer) {
    const chosen = typeof answer.optionId === "string";
    const given = chosen ? { outcome: { outcome: "selected", ...answer } } : answer;
    if (questionId.startsWith("unnamed_")) return this.#questions.reply(questionId, given);
    const id = crypto.randomUUID();
    return this.#app.outbox.add({ id, sessionId: this.id, method: "_antiphon/answer",
      params: { sessionId: this.id, questionId, operationId: id, ...given } });
  }

  /** Put a reaction or a note on a message. */
  annotate({ id, role }, kind, value) {
    return this.#change("_antiphon/annotate", { messageId: id, role, kind, value });
  }

  unannotate(annotationId) {
    return this.#change("_antiphon/remove_annotation", { annotationId });
  }

  replaceQueued(messageId, blocks) {
    return this.#change("_antiphon/replace_inject", { messageId, content: blocks });
  }

  moveQueued(messageId, before) {
    return this.#change("_antiphon/move_inject", before ? { messageId, before } : { messageId });
  }

  withdraw(messageId) {
    return this.#change("_antiphon/revoke_inject", { messageId });
  }

  resumeQueue() {
    return this.#change("_antiphon/resume_queue", {});
  }

  #change(method, params) {
    return this.#app.call(method, { sessionId: this.id, operationId: crypto.randomUUID(), ...params });
  }

  async setOption(configId, value) {
    const type = typeof value === "boolean" ? "boolean" : "id";
    const params = { sessionId: this.id, configId, type, value };
    const answer = await this.#app.call("session/set_config_option", params);
    if (answer.configOptions) this.#fold.set("options", "options", answer.configOptions);
    this.#soon();
  }

  cancelTool(toolCallId) {
    return this.#app.call("tool_call/cancel", { sessionId: this.id, toolCallId });
  }
}
