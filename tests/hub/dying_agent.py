"""An agent that dies of the cancel it is sent: `python dying_agent.py VERSION [silent]`.

With `silent` it answers no prompt before that: in v2, it has not taken what it was sent.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

VERSION, SILENT = int(sys.argv[1]), "silent" in sys.argv


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def tell(session: str, kind: str, **said: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": kind, **said}})


def opening() -> dict[str, Any]:
    info = {"name": "dying", "version": "1"}
    if VERSION == 1:
        return {"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {}}
    return {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}


for line in sys.stdin:
    frame = json.loads(line)
    method, id, params = frame.get("method"), frame.get("id"), frame.get("params", {})
    if method == "initialize":
        send(id=id, result=opening())
    elif method == "session/new":
        send(id=id, result={"sessionId": "s"})
    elif method == "session/cancel":
        os._exit(9)
    elif method == "session/prompt":
        if VERSION == 2 and not SILENT:
            send(id=id, result={"messageId": "m"})
            tell("s", "user_message", messageId="m", content=params["prompt"])
            tell("s", "state_update", state="running")
        said = {"messageId": "a"} if VERSION == 2 else {}
        tell("s", "agent_message_chunk", content={"type": "text", "text": "at work"}, **said)
