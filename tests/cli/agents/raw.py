"""An ACP v1 agent in the standard library, which goes wrong as its argument says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

HOW = sys.argv[1]


def send(**frame: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)


def say(text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send(method="session/update", params={"sessionId": "s1", "update": update})


def die(words: str) -> None:
    print(f"{words}\n\nNode.js v20.11.1", file=sys.stderr, flush=True)
    os._exit(3)


def initialize(frame: dict[str, Any]) -> None:
    if HOW == "dies-at-start":
        die("Error: Cannot find module 'left-pad'")
    if HOW == "silent":
        return
    if HOW == "old":
        send(id=frame["id"], error={"code": -32022, "message": "only version 0 is spoken here"})
        return
    version = 7 if HOW == "new" else 1
    shape = {} if HOW == "new" else {"agentInfo": {"name": "raw", "version": "1"}, "agentCapabilities": {}}
    send(id=frame["id"], result={"protocolVersion": version, **shape})


def new_session(frame: dict[str, Any]) -> None:
    if HOW == "login":
        send(id=frame["id"], error={"code": -32000, "message": "Authentication required"})
        return
    send(id=frame["id"], result={"sessionId": "s1"})


def prompt(frame: dict[str, Any]) -> None:
    if HOW == "login-late":
        send(id=frame["id"], error={"code": -32000, "message": "Your login has expired"})
    elif HOW == "dies":
        say("Once upon a time")
        die("Error: out of stories")
    elif HOW == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        say(f"I am {os.getpid()} and {child.pid}.")
    else:
        say("Hello.")
        usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
        send(id=frame["id"], result={"stopReason": "end_turn", "usage": usage})


HANDLERS = {"initialize": initialize, "session/new": new_session, "session/prompt": prompt}

for line in sys.stdin:
    frame = json.loads(line)
    handler = HANDLERS.get(frame.get("method", ""))
    if handler is not None:
        handler(frame)
if HOW == "stubborn":
    signal.pause()
