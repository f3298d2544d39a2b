// Sessions that the hub was asked for and has not made yet: their agent starts. A page shows such a session at
// once; prompts that are written meanwhile are sent when it is there.

import { failureNotice } from "./failure.js";
import { keep, kept } from "./storage.js";
import { LinkLost } from "./rpc.js";

/** The start of one session. */
export class Start {
  /** Why the hub made no session; null while it is asked. */
  error = null;
  since = Date.now();
  /** The prompts of the session that are not sent yet. */
  prompts = [];
  /** Whether the user gave up. A session that the hub makes all the same is deleted. */
  dropped = false;

  /** `options`: the folder and the agent, and values of options by their ids. */
  constructor({ cwd, agent = null, values = {} }) {
    this.cwd = cwd;
    this.agent = agent;
    this.values = values;
  }

  /** Keep a prompt. Resolves once the agent has answered it. */
  add(blocks) {
    return new Promise((resolve, reject) => {
      this.prompts.push({ id: crypto.randomUUID(), blocks, resolve, reject });
    });
  }

  get text() {
    const blocks = this.prompts.flatMap((prompt) => prompt.blocks);
    return blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n\n");
  }
}

export class Starts {
  #app;
  #make;

  /** `make(entry)` makes a session of the page. */
  constructor(app, make) {
    this.#app = app;
    this.#make = make;
  }

  /** Show a new session and ask the hub for it. `blocks`: its first prompt, if there is one. */
  begin(options, blocks = null) {
    const { cwd, agent } = options;
    const session = this.#make({ sessionId: `new-${crypto.randomUUID()}`, cwd, agent, title: null });
    session.starting = new Start(options);
    session.loading = false;
    if (blocks) session.prompt(blocks).catch((error) => this.#rejected(error));
    this.#app.show(session);
    this.run(session);
    return session;
  }

  /** Ask the hub for a session, again after an error. */
  async run(session, { agent = session.starting.agent } = {}) {
    const { starting } = session;
    starting.error = null;
    starting.agent = agent;
    starting.since = Date.now();
    session.changed("state");
    try {
      const sessionId = await this.#ask(starting);
      if (starting.dropped) await this.#app.call("session/delete", { sessionId });
      else await this.#begun(session, sessionId);
    } catch (error) {
      if (!starting.dropped) this.#failed(session, error);
    }
  }

  /** Give up a session that is not there yet. */
  drop(session) {
    session.starting.dropped = true;
    keep(`draft.${session.id}`, null);
    if (this.#app.session === session) this.#app.home();
  }

  /** Ask until there is an answer. The operation id makes sure that the hub makes one session. */
  async #ask({ cwd, agent }) {
    const _meta = { antiphon: { operationId: crypto.randomUUID(), ...(agent ? { agent } : {}) } };
    for (;;) {
      await this.#online();
      try {
        return (await this.#app.call("session/new", { cwd, mcpServers: [], _meta })).sessionId;
      } catch (error) {
        if (!(error instanceof LinkLost)) throw error;
      }
    }
  }

  #online() {
    const { link } = this.#app;
    if (link.state === "online") return Promise.resolve();
    return new Promise((resolve) => {
      const stop = link.on("state", (state) => {
        if (state !== "online") return;
        stop();
        resolve();
      });
    });
  }

  async #begun(session, sessionId) {
    const { prompts, values } = session.starting;
    const draft = `draft.${session.id}`;
    keep(`draft.${sessionId}`, kept(draft));
    keep(draft, null);
    await this.#app.adopt(session, sessionId).catch(() => {}); // the next link attaches
    this.#app.emit("begun", session);
    for (const [id, value] of Object.entries(values)) {
      await session.setOption(id, value).catch((error) => {
        this.#app.emit("error", failureNotice("An option was not set", error));
      });
    }
    session.starting = null;
    for (const { blocks, resolve, reject } of prompts) session.prompt(blocks).then(resolve, reject);
    session.changed("state", "transcript");
    const elsewhere = this.#app.session !== session;
    if (elsewhere) {
      const open = { label: "Open", run: () => this.#app.open(sessionId) };
      this.#app.emit("told", { title: "The new session has started", message: "", action: open });
    }
  }

  #rejected(error) {
    this.#app.emit("error", failureNotice("The prompt was rejected", error));
  }

  #failed(session, error) {
    session.starting.error = error;
    session.changed("state");
    if (this.#app.session === session) return;
    const action = { label: "Show", run: () => this.#app.show(session) };
    this.#app.emit("error", { ...failureNotice("The new session did not start", error), action });
  }
}
