"""A scripted stand-in for model providers, for running real ACP agents offline.

The standard library only; it binds 127.0.0.1. `stand_in_requests` reads the requests of each API,
`stand_in_script` decides what to do, and `stand_in_replies` writes the replies.

Speaks (streaming SSE and non-streaming):
  OpenAI  chat-completions  POST */chat/completions
  OpenAI  responses         POST */responses            (what codex uses)
  Anthropic messages        POST */messages  (+ */messages/count_tokens)
  Gemini                    POST */models/<m>:generateContent | :streamGenerateContent | :countTokens
  GET  */models             a model list usable by all of them
  anything else             200 {} (logged, so unexpected calls are visible)

What it answers depends only on the LAST real user text (block) of the request:
  ...TOOLREAD <path>     one tool call: the agent's file-read tool on <path>
  ...TOOLWRITE <path>    one tool call: the agent's file-write tool on <path> (content "written-by-tool\n")
  ...TOOL                one tool call: the shell tool, `echo hello-from-tool > made-by-tool.txt; cat …`
                         (a write, so that agents that auto-approve read-only commands still ask)
  ...TOOLSLOW            one tool call: the shell tool, `sleep 60` (to be cancelled)
  ...TOOL2               two shell tool calls in ONE assistant message (parallel)
  ...PLAN                one tool call on a todo/plan tool if the agent offers one
  ...SLOW                200 small chunks, 0.15 s apart (to be cancelled)
  ...BIG                 one 300 kB text in a few chunks
  ...THINK               a reasoning/thinking block first (where the API has one)
  ...UNICODE             astral, combining, CRLF, U+2028, NUL-free control characters in the text
  ...FAIL                HTTP 400 with an API error body
  otherwise              "Hello from the fake LLM. You said: <text>" in 4 chunks
After a tool result came back, it answers "Tool said: <first 200 chars of result>. DONE".

  python3 -m tests.peers.stand_in_model [--port 8765] [--log FILE]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.peers import stand_in_replies as replies
from tests.peers.stand_in_requests import Conversation, Tools
from tests.peers.stand_in_script import Action, decide

LOG: str | None = None
LOCK = threading.Lock()


def log(**kw: Any) -> None:
    kw["t"] = round(time.time(), 3)
    if LOG:
        with LOCK, open(LOG, "a") as f:
            f.write(json.dumps(kw, ensure_ascii=False) + "\n")


class Gone(Exception):
    pass


class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def send_json(self, obj: Any, code: int = 200) -> None:
        b = json.dumps(obj).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(b)))
        self.end_headers()
        self.wfile.write(b)

    def open_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def send_event(self, data: Any, event: str | None = None) -> None:
        s = (
            (f"event: {event}\n" if event else "")
            + "data: "
            + (data if isinstance(data, str) else json.dumps(data))
            + "\n\n"
        )
        try:
            self.wfile.write(s.encode())
            self.wfile.flush()
        except OSError:
            raise Gone from None

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        p = self.path.split("?")[0]
        log(method="GET", path=self.path)
        if p.rstrip("/").endswith("/models"):
            ids = ["fake-model", "gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro"]
            return self.send_json(
                {
                    "object": "list",
                    "has_more": False,
                    "data": [
                        {
                            "id": i,
                            "object": "model",
                            "type": "model",
                            "display_name": i,
                            "created": 1,
                            "created_at": "2025-01-01T00:00:00Z",
                            "owned_by": "fake",
                        }
                        for i in ids
                    ],
                    "models": [],
                }
            )
        return self.send_json({})

    def do_POST(self) -> None:
        n = int(self.headers.get("content-length") or 0)
        if (self.headers.get("transfer-encoding") or "").lower() == "chunked":
            raw = b""
            while True:
                k = int(self.rfile.readline().split(b";")[0], 16)
                if not k:
                    self.rfile.readline()
                    break
                raw += self.rfile.read(k)
                self.rfile.readline()
        else:
            raw = self.rfile.read(n)
        if (self.headers.get("content-encoding") or "") == "gzip":
            raw = gzip.decompress(raw)
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {"__raw__": raw[:200].decode("utf8", "replace")}
        p = self.path.split("?")[0]
        try:
            if p.endswith("/chat/completions"):
                replies.chat(self, body)
            elif p.endswith("/responses"):
                replies.responses(self, body)
            elif p.endswith("/messages/count_tokens"):
                log(method="POST", path=p)
                self.send_json({"input_tokens": 11})
            elif p.endswith("/messages"):
                replies.anthropic(self, body)
            elif ":countTokens" in p:
                log(method="POST", path=p)
                self.send_json({"totalTokens": 11})
            elif ":generateContent" in p or ":streamGenerateContent" in p:
                replies.gemini(self, body, p)
            else:
                log(method="POST", path=self.path, other=True, body=str(body)[:300])
                self.send_json({})
        except (Gone, BrokenPipeError, ConnectionResetError):
            log(note="client closed the connection mid-stream", path=p)
            self.close_connection = True

    def plan(self, api: str, norm: Callable[[Any], tuple[Conversation, Tools]], body: Any) -> list[Action]:
        conv, tools = norm(body)
        last, acts = decide(conv, tools)
        log(
            method="POST",
            api=api,
            path=self.path,
            model=body.get("model"),
            stream=body.get("stream"),
            turns=len(conv),
            last_user=last[-160:],
            tools=sorted(tools)[:60],
            acts=[(a[0], *(a[1:] if a[0] == "tool" else ())) for a in acts][:6],
        )
        if os.environ.get("FAKE_DUMP"):
            with open(os.path.join(os.environ["FAKE_DUMP"], f"{time.time():.3f}-{api}.json"), "w") as f:
                json.dump(body, f, indent=1)
        return acts


def listen(port: int, *, log_file: str | None = None) -> ThreadingHTTPServer:
    """A server that is bound already; `serve_forever` is left to the caller."""
    global LOG
    LOG = log_file
    server = ThreadingHTTPServer(("127.0.0.1", port), H)
    server.daemon_threads = True
    return server


def address(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def main() -> None:
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, default=8765)
    ap.add_argument("--log", default=None)
    a = ap.parse_args()
    server = listen(a.port, log_file=a.log)
    print(address(server), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
