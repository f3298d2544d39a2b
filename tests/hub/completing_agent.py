"""A v1 agent without Antiphon that ends its turns as its prompts say.

    python completing_agent.py [--promises]

The last line of a prompt's text is a list of words, done in order: `complete` and `complete-error` send a
`turn_complete` that names the request, `result` and `error` answer the prompt, `say` says something, `wait`
reads on until it is cancelled, `die` ends the process. `--promises` advertises `turn_complete`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

ERROR = {"code": -32001, "message": "it broke", "data": {"k": 1}}


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def update(session: str, kind: str, **fields: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": kind, **fields}})


def perform(id: Any, params: dict[str, Any]) -> None:
    session = params["sessionId"]
    for word in params["prompt"][-1]["text"].splitlines()[-1].split():
        match word:
            case "say":
                update(session, "agent_message_chunk", content={"type": "text", "text": "said"})
            case "complete":
                update(session, "turn_complete", promptRequestId=str(id), stopReason="end_turn")
            case "complete-error":
                update(session, "turn_complete", promptRequestId=str(id), error=ERROR)
            case "result":
                send(id=id, result={"stopReason": "end_turn"})
            case "error":
                send(id=id, error=ERROR)
            case "die":
                os._exit(3)
            case "wait":
                while json.loads(sys.stdin.readline()).get("method") != "session/cancel":
                    pass
                send(id=id, result={"stopReason": "cancelled"})


def main() -> None:
    able: dict[str, Any] = {"loadSession": True}
    if "--promises" in sys.argv:
        able["sessionCapabilities"] = {"turnComplete": {}}
    for line in sys.stdin:
        frame = json.loads(line)
        match frame.get("method"):
            case "initialize":
                info = {"name": "completing", "version": "1"}
                send(
                    id=frame["id"],
                    result={"protocolVersion": 1, "agentInfo": info, "agentCapabilities": able},
                )
            case "session/new":
                send(id=frame["id"], result={"sessionId": "s"})
            case "session/prompt":
                perform(frame["id"], frame["params"])
            case _ if "id" in frame and "method" in frame:
                send(id=frame["id"], result={})


main()
