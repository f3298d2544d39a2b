"""The agent of the hub benchmarks, by hand and without a library, so that it costs as little as an agent can.

python bench/hub_agent.py [--v1]          speaks ACP over stdio; the prompt `N [RATE]` streams N chunks
python bench/hub_agent.py --plain ID      no protocol: the line `N [RATE]` on stdin, the same chunks on stdout

Each chunk is forty characters, of which the first twenty are the time of its write (monotonic, ns), and
leaves with a write of its own. RATE is in chunks per second; without it, as fast as they are taken.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

END = " the last one of all"
MORE = " and twenty of more."
assert len(END) == len(MORE) == 20
INFO = {"name": "bench", "version": "1"}
V1 = {"protocolVersion": 1, "agentInfo": INFO, "agentCapabilities": {}}
V2 = {"protocolVersion": 2, "info": INFO, "capabilities": {"session": {}}}


def stream(session_id: str, count: int, rate: float | None, **update: Any) -> None:
    update |= {"content": {"type": "text", "text": "%b"}}
    start, rest = updated(session_id, sessionUpdate="agent_message_chunk", **update).split(b"%b")
    began = time.monotonic()
    for number in range(count):
        if rate is not None:
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
        padding = MORE if number < count - 1 else END
        write(b"%b%020d%b%b" % (start, time.monotonic_ns(), padding.encode(), rest))


def updated(session_id: str, **update: Any) -> bytes:
    return line(method="session/update", params={"sessionId": session_id, "update": update})


def line(**frame: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **frame}, separators=(",", ":")).encode() + b"\n"


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def asked(text: str) -> tuple[int, float | None]:
    count, *rate = text.split()
    return int(count), float(rate[0]) if rate else None


def prompted_v1(id: Any, session_id: str, content: list[Any]) -> None:
    stream(session_id, *asked(content[0]["text"]))
    write(line(id=id, result={"stopReason": "end_turn"}))


def prompted_v2(id: Any, session_id: str, content: list[Any]) -> None:
    message_id = f"prompt-{id}"
    write(line(id=id, result={"messageId": message_id}))
    write(updated(session_id, sessionUpdate="user_message", messageId=message_id, content=content))
    write(updated(session_id, sessionUpdate="state_update", state="running"))
    stream(session_id, *asked(content[0]["text"]), messageId="message-1")
    write(updated(session_id, sessionUpdate="state_update", state="idle", stopReason="end_turn"))


def speak(*, v1: bool) -> None:
    sessions = 0
    for raw in sys.stdin:
        match json.loads(raw):
            case {"id": id, "method": "initialize"}:
                write(line(id=id, result=V1 if v1 else V2))
            case {"id": id, "method": "session/new"}:
                sessions += 1
                write(line(id=id, result={"sessionId": f"session-{sessions}"}))
            case {"id": id, "method": "session/prompt", "params": params}:
                (prompted_v1 if v1 else prompted_v2)(id, params["sessionId"], params["prompt"])
            case {"id": id, "method": _}:
                write(line(id=id, error={"code": -32601, "message": "Method not found"}))


def plain(session_id: str) -> None:
    for raw in sys.stdin:
        stream(session_id, *asked(raw), messageId="message-1")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plain"]:
        plain(sys.argv[2])
    else:
        speak(v1="--v1" in sys.argv)
