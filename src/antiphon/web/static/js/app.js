// The app: the connection to the hub, its sessions, and the session that is shown.

import { Agents } from "./agents.js";
import { clientId, route } from "./browser.js";
import { Emitter } from "./emitter.js";
import { failureNotice } from "./failure.js";
import { ours } from "./fold/content.js";
import { sayHello } from "./hello.js";
import { keep, kept } from "./storage.js";
import { Link } from "./link.js";
import { logIn } from "./login.js";
import { keptUp, listAll } from "./listing.js";
import { Notices } from "./notices.js";
import { Outbox } from "./outbox.js";
import { Removals } from "./removing.js";
import { LinkLost, RpcError } from "./rpc.js";
import { Session } from "./session.js";
import { Starts } from "./starting.js";

const POLL = 5000;
/** Sessions that are kept in memory, so that going back to one requests only the events since then. */
const KEPT = 6;
/** The name of a user whose name is not known. */
const UNNAMED = "browser";

export class App extends Emitter {
  sessions = [];
  session = null;
  agents = [];
  me = { clientId: clientId(), name: kept("name") || UNNAMED };
  /** The capabilities of the hub. */
  capabilities = {};
  hub = null;
  role = null;
  /** The sessions that this browser may open; null for all. */
  only = null;
  cwd = null;
  outbox = new Outbox((method, params) => this.#deliver(method, params), (entry, error) => {
    this.#known.get(entry.sessionId)?.sent();
    if (error) this.#fail("A stored prompt was rejected", error);
  });
  link = new Link(
    {
      requests: {
        "session/request_permission": (...asked) => this.#asked("session/request_permission", ...asked),
        "elicitation/create": (...asked) => this.#asked("elicitation/create", ...asked),
      },
      notifications: {
        "session/update": (params) => this.#updated(params),
        "_antiphon/sessions": (news) => this.#heardOf(news),
      },
    },
    (peer) => this.#ready(peer),
  );
  notices = new Notices(this);
  agentList = new Agents(this);
  starts = new Starts(this, (entry) => new Session(this, entry));
  removals = new Removals(this);
  #known = new Map();
  #tellsSessions = false;
  #opening = null;

  /** Our extensions that the hub announces. */
  get offers() {
    return ours(this.capabilities._meta);
  }

  /** Whether this user may create and fork sessions. */
  get begins() {
    return this.role !== "observer" && this.only === null;
  }

  get injectModes() {
    return this.offers.inject?.modes ?? [];
  }

  async start() {
    let good = null;
    try {
      const { name, ...login } = await logIn();
      good = login.good;
      if (name && kept("name") === null) this.#rename(name);
    } catch {
      // The hub is not reachable. The link shows that, and the login code is lost.
    }
    this.outbox.restore();
    this.link.on("state", (state) => {
      this.emit("link");
      if (state === "online") this.#rejoin();
    });
    this.link.on("error", (error) => this.#fail("The hub did not answer as expected", error));
    addEventListener("popstate", () => this.#follow());
    addEventListener("hashchange", () => this.#follow());
    setInterval(() => this.#poll(), POLL);
    document.addEventListener("visibilitychange", () => this.#poll());
    this.linkWasGood = good;
    this.link.start();
  }

  retry() {
    this.link.retry();
  }

  // Over the link

  /** Send a request to the hub. Without a connection it rejects with LinkLost. */
  call(method, params) {
    return this.link.peer ? this.link.peer.request(method, params) : Promise.reject(new LinkLost());
  }

  notify(method, params) {
    this.link.peer?.notify(method, params);
  }

  /** Deliver a request of the outbox, which may be for a session that is no longer shown. */
  async #deliver(method, params) {
    await this.#opening?.done.catch(() => {});
    if (this.link.state !== "online") throw new LinkLost();
    const { sessionId } = params;
    const elsewhere = sessionId !== this.session?.id;
    if (elsewhere) await this.call("_antiphon/attach", { sessionId, historyPolicy: "none" });
    const answer = await this.call(method, params);
    if (elsewhere && sessionId !== this.session?.id) await this.call("_antiphon/detach", { sessionId });
    return answer;
  }

  async #ready(peer) {
    const { clientId, ...told } = await sayHello(peer, this.me);
    this.me.clientId = clientId;
    Object.assign(this, told);
    this.#tellsSessions = this.offers.sessionUpdates === true;
    await this.#list(peer);
  }

  /** Attach to the session that is shown, and send what is in the outbox. */
  async #rejoin() {
    const { peer } = this.link;
    try {
      if (this.session?.starting) await this.#list(peer); // its start goes on by itself
      else if (this.session) await this.#attach(this.session, peer);
      else await this.#follow();
      this.outbox.flush();
    } catch (error) {
      if (!(error instanceof LinkLost)) throw error; // the next link tries again
    }
  }

  // Sessions

  async #list(peer) {
    this.#listed(await listAll(peer));
  }

  #listed(sessions) {
    this.sessions = sessions.filter((entry) => !this.removals.has(entry.sessionId));
    for (const entry of sessions) this.#known.get(entry.sessionId)?.describe(entry);
    this.emit("sessions");
  }

  /** Apply a change of the list of sessions. */
  #heardOf({ sessions, gone }) {
    if (!Array.isArray(sessions) || !Array.isArray(gone)) return;
    for (const sessionId of gone) this.#known.delete(sessionId);
    this.#listed(keptUp(this.sessions, sessions, gone));
    if (!gone.includes(this.session?.id)) return;
    this.home();
    this.emit("error", { title: "The session was deleted", message: "Another user deleted it." });
  }

  #poll() {
    if (this.#tellsSessions || document.hidden || this.link.state !== "online") return;
    this.#list(this.link.peer).catch(() => {}); // the next time may tell
  }

  #entry(sessionId) {
    return this.sessions.find((entry) => entry.sessionId === sessionId) ?? { sessionId };
  }

  /** Show the session that the address names. */
  async #follow() {
    const wanted = route();
    if ((this.session === null || this.session.starting ? null : this.session.id) === wanted) return;
    if (wanted === null && location.hash && this.session) {
      // A place on the page, such as the composer: the address still names the session.
      history.replaceState(null, "", `#/s/${encodeURIComponent(this.session.id)}`);
      return;
    }
    if (wanted === null) this.show(null);
    else await this.#enter(wanted);
  }

  /** Show no session, but the page where one begins a new one. */
  home() {
    if (route() !== null) history.pushState(null, "", location.pathname + location.search);
    this.show(null);
    this.emit("opened");
  }

  async open(sessionId) {
    this.emit("opened");
    if (this.session?.id === sessionId) return this.session;
    if (route() !== sessionId) history.pushState(null, "", `#/s/${encodeURIComponent(sessionId)}`);
    await this.#enter(sessionId);
    return this.session;
  }

  async #enter(sessionId) {
    const session = this.#known.get(sessionId) ?? new Session(this, this.#entry(sessionId));
    this.#know(session);
    this.show(session);
    if (this.link.state === "online") await this.#attach(session, this.link.peer);
  }

  #know(session) {
    this.#known.delete(session.id);
    this.#known.set(session.id, session); // the most recent session is the last one
    for (const [id, old] of this.#known) {
      if (this.#known.size <= KEPT) break;
      if (old !== this.session) this.#known.delete(id);
    }
  }

  /** Show a session, or with null none. */
  show(session) {
    const before = this.session;
    if (before === session) return;
    before?.leave(() => this.session !== before);
    this.session = session;
    this.emit("session");
  }

  async #attach(session, peer) {
    if (this.#opening?.session === session && this.#opening.peer === peer) return this.#opening.done;
    const done = session.attach(peer);
    this.#opening = { session, peer, done };
    try {
      await done;
    } catch (error) {
      if (error instanceof LinkLost) throw error;
      this.#known.delete(session.id);
      if (this.session === session) {
        history.replaceState(null, "", location.pathname + location.search);
        this.show(null);
      }
      this.#fail("The session could not be opened", error);
    } finally {
      if (this.#opening?.done === done) this.#opening = null;
    }
  }

  async fork(sessionId, messageId) {
    const cwd = this.#entry(sessionId).cwd ?? this.session?.cwd ?? "/";
    const _meta = { antiphon: { operationId: crypto.randomUUID(), ...(messageId ? { messageId } : {}) } };
    const answer = await this.call("session/fork", { sessionId, cwd, mcpServers: [], _meta });
    this.#announce(answer.sessionId, cwd, null);
    return this.open(answer.sessionId);
  }

  /** Go on with a session of the page under the id that the hub has given it. */
  async adopt(session, sessionId) {
    session.begun(this.#announce(sessionId, session.cwd, session.agent));
    this.#know(session);
    if (this.session !== session) return;
    history.pushState(null, "", `#/s/${encodeURIComponent(sessionId)}`);
    this.emit("sessions");
    await this.#attach(session, this.link.peer);
  }

  /** List a session that was made just now. Returns its entry. */
  #announce(sessionId, cwd, agent) {
    this.#poll();
    const known = this.sessions.find((entry) => entry.sessionId === sessionId);
    if (known) return known;
    const updatedAt = new Date().toISOString();
    const entry = { sessionId, cwd, title: null, updatedAt, state: "idle", clients: 1, agent };
    this.sessions = [entry, ...this.sessions];
    this.emit("sessions");
    return entry;
  }

  /** Take a session from the list, and show it no more. */
  hide(sessionId) {
    this.#known.delete(sessionId);
    this.sessions = this.sessions.filter((entry) => entry.sessionId !== sessionId);
    if (this.session?.id === sessionId) this.home();
    this.emit("sessions");
  }

  relist() {
    return this.link.peer ? this.#list(this.link.peer) : Promise.resolve();
  }

  async rename(sessionId, title) {
    await this.call("session/set_title", { sessionId, title });
    for (const entry of this.sessions) if (entry.sessionId === sessionId) entry.title = title;
    this.#known.get(sessionId)?.describe({ title });
    this.emit("sessions");
  }

  /** Change the name of this user, and reconnect so that others see it. */
  setName(name) {
    this.#rename(name.trim());
    this.link.renew();
  }

  #rename(name) {
    this.me.name = name || UNNAMED;
    keep("name", name || null);
    this.emit("named");
  }

  // Frames from the hub

  #updated(params) {
    const session = this.#known.get(params.sessionId);
    if (session?.listening) session.receive(params);
  }

  #asked(method, params, { signal }) {
    const session = this.#known.get(params.sessionId) ?? (params.sessionId ? null : this.session);
    if (!session) throw new RpcError(-32002, "This page does not follow this session.");
    return session.asked(method, params, signal);
  }

  #fail(title, error) {
    this.emit("error", failureNotice(title, error));
  }
}
