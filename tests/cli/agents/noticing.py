"""An agent in the standard library that sends notices outside of its turns: `python noticing.py VERSION`."""

from __future__ import annotations

import json
import sys
from typing import Any

VERSION = int(sys.argv[1])


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")


def update(kind: str, **fields: Any) -> None:
    params = {"sessionId": "s1", "update": {"sessionUpdate": kind, **fields}}
    send(method="session/update", params=params)


def notice(title: str) -> None:
    update("notice", severity="warning", title=title)


def initialize(id: Any, params: Any) -> None:
    info = {"name": "noticing", "version": "1"}
    if VERSION == 1:
        send(id=id, result={"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {}})
    else:
        send(id=id, result={"protocolVersion": 2, "info": info, "capabilities": {"session": {}}})


def new_session(id: Any, params: Any) -> None:
    notice("before the session")
    send(id=id, result={"sessionId": "s1"})
    notice("behind the session")


def prompt(id: Any, params: Any) -> None:
    notice("before the turn")
    if VERSION == 2:
        send(id=id, result={"messageId": "u"})
        update("user_message", messageId="u", content=params["prompt"])
        update("state_update", state="running")
    update("agent_message_chunk", messageId="a", content={"type": "text", "text": "Hello."})
    notice("in the turn")
    if VERSION == 2:
        update("state_update", state="idle", stopReason="end_turn")
    else:
        send(id=id, result={"stopReason": "end_turn"})
    notice("behind the turn")


HANDLERS = {"initialize": initialize, "session/new": new_session, "session/prompt": prompt}
for line in sys.stdin:
    frame = json.loads(line)
    handler = HANDLERS.get(frame.get("method", ""))
    if handler is not None:
        handler(frame["id"], frame["params"])
    sys.stdout.flush()  # all of it at once
