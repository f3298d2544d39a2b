// One session: its fold, the requests of this client, and change events, at most once per frame.

import { Emitter } from "./emitter.js";
import { SessionFold } from "./fold/session.js";
import { ours } from "./fold/content.js";
import { Questions, readQuestion } from "./questions.js";
import { LinkLost, RpcError } from "./rpc.js";

/** Milliseconds between change events while the page is hidden and draws no frames. */
const HIDDEN_FRAME = 250;

export class Session extends Emitter {
  /** Whether the history is still loading. */
  loading = true;
  /** Whether updates are received in order. */
  listening = false;
  /** The start of a session that the hub has not made yet (`starting.js`); null once it has. */
  starting = null;
  #app;
  #entry;
  #fold = new SessionFold();
  /** The last event up to which the fold is complete. */
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
  get agent() { return this.#entry.agent ?? null; }
  get state() {
    if (this.starting) return this.starting.error ? "failed" : "starting";
    return this.#fold.turn.shown;
  }
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
  /** Whether the agent itself can fork the session after a message. */
  agentForksAt = false;
  get questions() { return this.#questions.all; }

  /** Prompts that the hub has not confirmed yet. */
  get unsent() {
    if (this.starting) return this.starting.prompts;
    return this.#app.outbox.of(this.id).filter(({ params }) => params.prompt ?? params.content)
      .map(({ id, params }) => ({ id, blocks: params.prompt ?? params.content }));
  }

  /** Take the id of the session that the hub has made. */
  begun(entry) {
    this.id = entry.sessionId;
    this.#entry = entry;
    this.loading = true;
    this.#soon("info");
  }

  /** Tell the views of changes that are not in the fold. */
  changed(...kinds) {
    for (const kind of kinds) this.#soon(kind);
  }

  /** Apply an entry of the list of sessions. */
  describe(entry) {
    const before = `${this.title} ${this.cwd}`;
    this.#entry = { ...this.#entry, ...entry };
    if (before !== `${this.title} ${this.cwd}`) this.#soon("info");
  }

  // Attaching and updates

  /** Attach over a connection. Requests of one session run one after the other. */
  attach(peer) {
    return this.#inTurn(() => this.#attach(peer));
  }

  #inTurn(ask) {
    this.#asking = this.#asking.catch(() => {}).then(ask);
    return this.#asking;
  }

  /** Attach. The missed events, or all events, come before the answer. */
  async #attach(peer) {
    const before = this.#fold;
    const goOn = this.#cursor !== null;
    if (!goOn) {
      this.#fold = new SessionFold();
      this.#fold.from = 0;
      this.loading = true;
    }
    this.#fold.set("queue", "queue", { entries: [], paused: false }); // the hub sends the queue again if there is one
    this.#questions.returned(() => this.#endedQuestions());
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
    if (!this.listening) return; // the user left meanwhile, and updates were not received
    if (Number.isInteger(answer.seq)) this.#cursor = answer.seq;
    if (answer.configOptions && !this.#fold.options.length) {
      this.#fold.set("options", "options", answer.configOptions);
    }
    if (answer.availableCommands && !this.#fold.commands.length) {
      this.#fold.set("commands", "commands", answer.availableCommands);
    }
    this.agentForksAt = ours(answer._meta).agentForksAt === true;
    if (Array.isArray(answer.clients)) this.#fold.set("presence", "clients", answer.clients);
    this.loading = false;
    if (this.#cancels !== null && this.#cancels === this.#fold.turnPrompt) this.cancel();
    this.#cancels = null;
    for (const kind of ["transcript", "state", "info", "queue"]) this.#soon(kind);
  }

  async #recall(fold) {
    try {
      const { items } = await this.#app.call("_antiphon/timeline", { sessionId: this.id });
      if (fold === this.#fold) fold.recall(items);
      this.#soon();
    } catch {
      // Without a timeline, the ends of earlier turns are not shown.
    }
  }

  /** How questions ended while there was no connection, by their ids. */
  async #endedQuestions() {
    const { items } = await this.#app.timeline(this.id);
    const ended = items.filter(({ kind, end }) => kind === "question" && end);
    return new Map(ended.map(({ id, status, by, outcome, cause }) =>
      [id, { state: status, by: by ?? null, outcomeName: outcome ?? null, cause: cause ?? null }]));
  }

  /** Detach, because another session is shown. The cursor is kept unless the history was still loading.
   * `left()` says whether the session is still not shown when the request is sent. */
  leave(left) {
    if (this.starting) return;
    this.listening = false;
    if (this.loading) this.#cursor = null;
    this.#inTurn(async () => {
      if (left()) await this.#app.call("_antiphon/detach", { sessionId: this.id });
    }).catch(() => {}); // a lost connection has detached it, too
  }

  /** Handle an answer to a request of the outbox. */
  sent() {
    this.#soon("transcript");
  }

  receive({ update, _meta }) {
    const { seq } = ours(_meta);
    try {
      if (update?.sessionUpdate === "_antiphon_question") this.#heard(update);
      else this.#fold.apply(update, this.loading ? undefined : Date.now());
    } catch (error) {
      console.warn("update ignored", error); // earlier updates are not affected
    }
    // Our own updates describe the present, and may come before the history.
    if (Number.isInteger(seq) && !update?.sessionUpdate?.startsWith("_antiphon_")) this.#cursor = seq;
    this.#soon();
  }

  #heard(news) {
    const asked = this.#questions.get(news.questionId);
    if (news.state === "expired" && news.cause) this.#fold.expired.push({ title: asked?.title ?? asked?.message });
    this.#questions.hear(news);
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

  /** Emit changes once per frame. */
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

  // Requests

  /** While it works, `queue` waits where it can be edited, `steer` goes in, `interrupt` cancels first. */
  async prompt(blocks, delivery) {
    if (this.starting) {
      this.#soon("transcript");
      return this.starting.add(blocks);
    }
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
      this.#cancels = turnPrompt; // sent after a reconnect, if the turn is still the same
      return;
    }
    const which = turnPrompt ? { messageId: turnPrompt } : {}; // a late cancel does not hit a later turn
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

  /** Files of the session's folder: {path, uri}, the best first. */
  async findFiles(query) {
    return (await this.#app.call("_antiphon/find_files", { sessionId: this.id, query })).files ?? [];
  }

  cancelTool(toolCallId) {
    return this.#app.call("tool_call/cancel", { sessionId: this.id, toolCallId });
  }
}
