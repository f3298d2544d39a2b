// The connection to the hub: a WebSocket that reconnects, and at once when the network or the page returns.

import { Emitter } from "./emitter.js";
import { NotLetIn, newTicket } from "./login.js";
import { Peer } from "./rpc.js";

const FIRST = 400;
const LONGEST = 15000;
/** Milliseconds of silence after which the hub is pinged, because a dead network closes no socket. */
const SILENCE = 20000;
const PATIENCE = 8000;

/** Emits `state`. `ready(peer)` must succeed before the connection counts as online. */
export class Link extends Emitter {
  state = "connecting";
  since = Date.now();
  retryAt = null;
  peer = null;
  #handlers;
  #ready;
  #attempts = 0;
  #timer = null;
  #socket = null;
  #heardAt = 0;
  #probing = false;

  constructor(handlers, ready) {
    super();
    this.#handlers = handlers;
    this.#ready = ready;
  }

  start() {
    addEventListener("online", () => this.#hope());
    addEventListener("offline", () => this.probe(2000));
    document.addEventListener("visibilitychange", () => document.hidden || this.#hope());
    addEventListener("pageshow", (event) => event.persisted && this.#hope());
    setInterval(() => this.#listen(), 5000);
    this.#connect();
  }

  /** Reconnect now. */
  retry() {
    if (this.state === "online" || this.#socket) return;
    this.#attempts = 0;
    this.#connect();
  }

  /** Reconnect, because the client says its name only at the start of a connection. */
  renew() {
    if (this.state === "online") this.#lost(this.#socket, 0);
  }

  /** Ping the hub. Without an answer the connection counts as lost. */
  async probe(patience = PATIENCE) {
    const { peer } = this;
    const socket = this.#socket;
    if (this.state !== "online" || this.#probing) return;
    this.#probing = true;
    const alarm = setTimeout(() => this.#lost(socket), patience);
    try {
      await peer.request("session/list", {});
    } catch {
      // an error is an answer, too
    } finally {
      clearTimeout(alarm);
      this.#probing = false;
    }
  }

  #hope() {
    if (this.state === "online") this.probe(3000);
    else this.retry();
  }

  #listen() {
    if (this.state === "online" && !document.hidden && Date.now() - this.#heardAt > SILENCE) this.probe();
  }

  async #connect() {
    clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#socket) return;
    const placeholder = {};
    this.#socket = placeholder;
    this.#tell(this.state === "lost" ? "lost" : "connecting", null);
    try {
      const ticket = await newTicket();
      this.#open(ticket);
    } catch (error) {
      this.#socket = null;
      if (error instanceof NotLetIn) this.#tell("refused", null);
      else this.#later();
    }
  }

  #open(ticket) {
    const address = new URL("/acp", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address, ["acp.v2", `acp-ticket.${ticket}`]);
    this.#socket = socket;
    const send = (frame) => socket.readyState === WebSocket.OPEN && socket.send(frame);
    const peer = new Peer(send, this.#handlers);
    const alarm = setTimeout(() => this.#lost(socket), PATIENCE);
    socket.onmessage = ({ data }) => {
      if (this.#socket !== socket) return;
      this.#heardAt = Date.now();
      peer.receive(data);
    };
    socket.onclose = () => this.#lost(socket);
    socket.onopen = async () => {
      this.peer = peer;
      try {
        await this.#ready(peer);
      } catch (error) {
        if (this.#socket === socket) this.emit("error", error);
        this.#lost(socket);
      } finally {
        clearTimeout(alarm);
      }
      if (this.#socket !== socket) return;
      this.#attempts = 0;
      this.#tell("online", null);
    };
  }

  #lost(socket, delay) {
    if (this.#socket !== socket) return;
    this.#socket = null;
    socket.onclose = null;
    socket.onmessage = null;
    socket.close();
    const { peer } = this;
    this.peer = null;
    peer?.close();
    this.#later(delay);
  }

  #later(given) {
    const longest = Math.min(LONGEST, FIRST * 2 ** this.#attempts);
    const delay = given ?? longest * (0.5 + Math.random() / 2); // with jitter, because many pages reconnect after a restart
    this.#attempts += 1;
    this.#timer = setTimeout(() => this.#connect(), delay);
    this.#tell(this.#attempts > 1 || this.state !== "connecting" ? "lost" : "connecting", Date.now() + delay);
  }

  #tell(state, retryAt) {
    if (state !== this.state) this.since = Date.now();
    this.state = state;
    this.retryAt = retryAt;
    this.emit("state", state);
  }
}
