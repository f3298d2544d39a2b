"""A page of somebody else's, on a server of their own, and what it tries against a hub.

Every attempt is a script that is told the hub's address and what was stolen, and says what came of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STRANGE = b"<!doctype html><html lang=en><title>A page elsewhere</title><h1>Elsewhere</h1>"


class _Stranger(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(STRANGE)

    def log_message(self, format: str, *given: object) -> None: ...


@contextmanager
def stranger() -> Iterator[int]:
    """The port at which a strange page is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Stranger) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


FETCH = """const told = async (path, options) => {
  try {
    const answer = await fetch(hub + path, { credentials: "include", ...options });
    return answer.type === "opaque" ? "unreadable" : `${answer.status} ${await answer.text()}`;
  } catch { return "failed"; }
};"""
SOCKET = """const opened = (protocols) => new Promise((resolve) => {
  const socket = new WebSocket(hub.replace("http", "ws") + "/acp", protocols);
  socket.onopen = () => resolve("OPEN");
  socket.onerror = () => resolve("failed");
});"""
FORM = """const posted = (path) => new Promise((resolve) => {
  const frame = document.createElement("iframe");
  frame.name = `frame${Math.random()}`;
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: hub + path, target: frame.name, enctype: "text/plain" });
  const field = document.createElement("input");
  Object.assign(field, { name: `{"code": "${code}", "x": "`, value: '"}' });
  form.append(field);
  document.body.append(frame, form);
  frame.onload = () => { try { resolve(`READ ${frame.contentDocument.body.innerText}`); }
    catch { resolve("unreadable"); } };
  form.submit();
});"""
INCLUDE = """const included = (name, values) => new Promise((resolve) => {
  const element = document.createElement(name);
  element.onload = () => resolve("loaded");
  element.onerror = () => resolve("failed");
  document.body.append(Object.assign(element, values));
});"""

INITIALIZE = """const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize",
  params: { protocolVersion: 2, info: { name: "x", version: "1" }, capabilities: {} } });"""


def attempt(
    body: str, expected: str, *refusals: tuple[str, int]
) -> tuple[str, str, tuple[tuple[str, int], ...]]:
    """A script, what it learns, and the refusals that the hub notes down meanwhile."""
    script = (
        f"async ([hub, code, ticket, token]) => {{ {INITIALIZE} {FETCH} {SOCKET} {FORM} {INCLUDE} {body} }}"
    )
    return script, expected, refusals


ATTEMPTS = {
    "log in": attempt(
        'return await told("/login", { method: "POST", body: JSON.stringify({ code }) });',
        "failed", ("/login", 403),
    ),
    "log in, unread": attempt(
        'return await told("/login", { method: "POST", mode: "no-cors", body: JSON.stringify({ code }) });',
        "unreadable", ("/login", 403),
    ),
    "log in, by a form": attempt('return await posted("/login");', "unreadable", ("/login", 403)),
    "log in, as JSON": attempt(
        """return await told("/login", { method: "POST", headers: { "Content-Type": "application/json" },
             body: JSON.stringify({ code }) });""",
        "failed", ("/login", 403),
    ),
    "a ticket": attempt('return await told("/ticket", { method: "POST" });', "failed", ("/ticket", 403)),
    "a ticket, unread": attempt(
        'return await told("/ticket", { method: "POST", mode: "no-cors" });', "unreadable", ("/ticket", 403),
    ),
    "a ticket, by a form": attempt('return await posted("/ticket");', "unreadable", ("/ticket", 403)),
    "a ticket, by a beacon": attempt(
        'return String(navigator.sendBeacon(hub + "/ticket", "x"));', "true", ("/ticket", 403),
    ),
    "a logout": attempt(
        'return await told("/logout", { method: "POST", mode: "no-cors" });', "unreadable", ("/logout", 403),
    ),
    "a connection": attempt(
        'return await told("/acp", { method: "POST", body });',
        "failed", ("/acp", 403),
    ),
    "a connection, unread": attempt(
        'return await told("/acp", { method: "POST", mode: "no-cors", body });',
        "unreadable", ("/acp", 403),
    ),
    "a connection, by a form": attempt('return await posted("/acp");', "unreadable", ("/acp", 403)),
    "a connection, with the token": attempt(
        'return await told("/acp", { method: "POST", body, headers: { Authorization: `Bearer ${token}` } });',
        "failed", ("/acp", 403),
    ),
    "a stream": attempt('return await told("/acp");', "failed", ("/acp", 403)),
    "a stream, unread": attempt(
        'return await told("/acp", { mode: "no-cors" });', "unreadable", ("/acp", 401),
    ),
    "a stream of events": attempt(
        """return await new Promise((resolve) => {
             const source = new EventSource(hub + "/acp", { withCredentials: true });
             source.onopen = () => resolve("OPEN");
             source.onerror = () => { source.close(); resolve("failed"); };
           });""",
        "failed", ("/acp", 403),
    ),
    "numbers": attempt('return await told("/metrics");', "failed", ("/metrics", 403)),
    "numbers, as a script": attempt(
        'return await included("script", { src: hub + "/metrics" });', "failed", ("/metrics", 401),
    ),
    "a socket": attempt('return await opened(["acp.v2"]);', "failed", ("/acp", 403)),
    "a socket, with a ticket": attempt(
        "return await opened(['acp.v2', `acp-ticket.${ticket}`]);", "failed", ("/acp", 403),
    ),
    "the page, read": attempt('return await told("/");', "failed", ("/", 403)),
    "the page's script": attempt('return await included("script", { src: hub + "/js/main.js" });', "failed"),
    "the page's style": attempt(
        'return await included("link", { rel: "stylesheet", href: hub + "/css/tokens.css" });', "failed",
    ),
    "the page, framed": attempt(
        """await included("iframe", { src: hub + "/" });
           try { return `READ ${frames[frames.length - 1].document.title}`; }
           catch { return "unreadable"; }""",
        "unreadable",
    ),
}  # fmt: skip
"""For a page on another origin, with the visitor's cookie at hand."""

NOT_HERE = "403 This is not the host you asked for."
REBOUND = {
    "log in": attempt(
        'return await told("/login", { method: "POST", body: JSON.stringify({ code }) });',
        NOT_HERE, ("/login", 403),
    ),
    "a ticket": attempt(
        'return await told("/ticket", { method: "POST" });',
        NOT_HERE, ("/ticket", 403),
    ),
    "a connection": attempt(
        'return await told("/acp", { method: "POST", body });',
        NOT_HERE, ("/acp", 403),
    ),
    "a connection, with the token": attempt(
        'return await told("/acp", { method: "POST", body, headers: { Authorization: `Bearer ${token}` } });',
        NOT_HERE, ("/acp", 403),
    ),
    "numbers": attempt(
        'return await told("/metrics");', NOT_HERE, ("/metrics", 403),
    ),
    "the page": attempt('return await told("/");', NOT_HERE, ("/", 403)),
    "a socket": attempt('return await opened(["acp.v2"]);', "failed", ("/acp", 403)),
    "a socket, with a ticket": attempt(
        "return await opened(['acp.v2', `acp-ticket.${ticket}`]);", "failed", ("/acp", 403),
    ),
}  # fmt: skip
"""For a page whose own name was made to lead to the hub: what it reads is of its own origin."""
