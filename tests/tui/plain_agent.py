"""An agent of ACP 1 that can do nothing but answer, standard library only: `hold` waits for a cancel."""

from __future__ import annotations

import json
import sys
from typing import Any


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


held: Any = None
for line in sys.stdin:
    frame = json.loads(line)
    match frame.get("method"):
        case "initialize":
            send(id=frame["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
        case "session/new":
            send(id=frame["id"], result={"sessionId": "s"})
        case "session/prompt":
            text = frame["params"]["prompt"][0]["text"]
            content = {"type": "text", "text": f"heard {text}"}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            send(method="session/update", params={"sessionId": "s", "update": update})
            if text == "hold":
                held = frame["id"]
            else:
                send(id=frame["id"], result={"stopReason": "end_turn"})
        case "session/cancel" if held is not None:
            send(id=held, result={"stopReason": "cancelled"})
            held = None
