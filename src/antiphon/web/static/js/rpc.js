// One side of a JSON-RPC conversation: requests both ways, notifications, cancellation. No transport.

export class RpcError extends Error {
  constructor(code, message, data) {
    super(message);
    this.name = "RpcError";
    this.code = code;
    this.data = data;
  }
}

/** The connection was lost before the answer came, so the outcome is unknown. */
export class LinkLost extends Error {
  constructor(message = "The connection to the hub was lost.") {
    super(message);
    this.name = "LinkLost";
  }
}

export const CANCELLED = -32800;

export class Peer {
  #send;
  #next = 1;
  #asked = new Map();
  #answering = new Map();
  #handlers;
  #closed = null;

  /**
   * @param {(frame: string) => void} send
   * @param {{requests?: Object<string, Function>, notifications?: Object<string, Function>}} handlers
   *   a request gets (params, {signal}), a notification (params)
   */
  constructor(send, { requests = {}, notifications = {} } = {}) {
    this.#send = send;
    this.#handlers = { requests, notifications };
  }

  request(method, params, { signal } = {}) {
    if (this.#closed) return Promise.reject(this.#closed);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject });
      signal?.addEventListener("abort", () => this.notify("$/cancel_request", { requestId: id }));
      this.#write({ jsonrpc: "2.0", id, method, params });
    });
  }

  notify(method, params) {
    if (!this.#closed) this.#write({ jsonrpc: "2.0", method, params });
  }

  /** Handle a message from the wire. */
  receive(text) {
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      this.#write({ jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } });
      return;
    }
    for (const one of Array.isArray(frame) ? frame : [frame]) this.#take(one);
  }

  /** End the connection: reject all requests. */
  close(error = new LinkLost()) {
    if (this.#closed) return;
    this.#closed = error;
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
    for (const abort of this.#answering.values()) abort.abort(error);
    this.#answering.clear();
  }

  #take(frame) {
    if (!frame || typeof frame !== "object") return;
    if (typeof frame.method !== "string") this.#answered(frame);
    else if (frame.id === undefined) this.#notified(frame);
    else this.#answer(frame);
  }

  #answered({ id, result, error }) {
    const waiting = this.#asked.get(id);
    if (!waiting) return;
    this.#asked.delete(id);
    if (error) waiting.reject(new RpcError(error.code, String(error.message), error.data));
    else waiting.resolve(result ?? {});
  }

  #notified({ method, params }) {
    if (method === "$/cancel_request") {
      this.#answering.get(params?.requestId)?.abort(new RpcError(CANCELLED, "Request cancelled"));
      return;
    }
    const { notifications } = this.#handlers;
    if (Object.hasOwn(notifications, method)) notifications[method](params ?? {});
  }

  async #answer({ id, method, params }) {
    const { requests } = this.#handlers;
    if (!Object.hasOwn(requests, method)) {
      this.#write({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
      return;
    }
    const abort = new AbortController();
    this.#answering.set(id, abort);
    const gone = new Promise((_, reject) => {
      abort.signal.addEventListener("abort", () => reject(abort.signal.reason));
    });
    try {
      const result = await Promise.race([requests[method](params ?? {}, { signal: abort.signal }), gone]);
      this.#write({ jsonrpc: "2.0", id, result });
    } catch (error) {
      const told = error instanceof RpcError ? error : new RpcError(-32603, "Internal error");
      const { code, message, data } = told;
      this.#write({ jsonrpc: "2.0", id, error: { code, message, data } });
    } finally {
      this.#answering.delete(id);
    }
  }

  #write(frame) {
    if (!this.#closed) this.#send(JSON.stringify(frame));
  }
}
