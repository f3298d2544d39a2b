"""An agent without Antiphon that measures its prompts: `python measuring_agent.py VERSION`.

It says how long the text of a prompt is, and its checksum. A prompt `answer N` is answered with N bytes
beside the result, `say N` with a message of N bytes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

VERSION = 1 if sys.argv[1:2] == ["1"] else 2


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def update(session: str, kind: str, **fields: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": kind, **fields}})


def prompted(id: Any, params: dict[str, Any]) -> None:
    session, text = params["sessionId"], params["prompt"][-1]["text"]
    word, _, size = text[:40].partition(" ")
    beside = {"_meta": {"big": "x" * int(size)}} if word == "answer" else {}
    said = "y" * int(size) if word == "say" else measure(text)
    chunk = {"messageId": f"m{id}", "content": {"type": "text", "text": said}}
    if VERSION == 1:
        update(session, "agent_message_chunk", **chunk)
        send(id=id, result={"stopReason": "end_turn", **beside})
        return
    send(id=id, result={"messageId": f"u{id}", **beside})
    update(session, "user_message", messageId=f"u{id}", content=params["prompt"])
    update(session, "state_update", state="running")
    update(session, "agent_message_chunk", **chunk)
    update(session, "state_update", state="idle", stopReason="end_turn")


def measure(text: str) -> str:
    return f"{len(text)} {hashlib.sha256(text.encode()).hexdigest()}"


def main() -> None:
    info = {"name": "measuring", "version": "1"}
    for line in sys.stdin:
        frame = json.loads(line)
        match frame.get("method"):
            case "initialize" if VERSION == 1:
                send(
                    id=frame["id"], result={"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {}}
                )
            case "initialize":
                able = {"session": {}}
                send(id=frame["id"], result={"protocolVersion": 2, "info": info, "capabilities": able})
            case "session/new":
                send(id=frame["id"], result={"sessionId": "s"})
            case "session/prompt":
                prompted(frame["id"], frame["params"])
            case _ if "id" in frame and "method" in frame:
                send(id=frame["id"], result={})


if __name__ == "__main__":
    main()
