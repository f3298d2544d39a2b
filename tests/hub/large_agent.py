"""A v2 agent by hand whose prompts say how much it sends: `python large_agent.py`.

`text N SIZE`: a message of N chunks. `call N SIZE`: a tool call with N pieces of content. `output N SIZE`: a
terminal with N chunks of output. `raw SIZE`: a tool call with one raw output. `strangers N`: updates of N
sessions that nobody knows. `unknown N`: notifications of a method that nobody knows. `answers N`: responses
to no request. `noise N`: lines that are no JSON. `questions N`: requests for permission. `say TEXT`: a
message.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any

INFO = {"name": "large", "version": "1"}
said = 0


def write(**frame: Any) -> None:
    put(json.dumps({"jsonrpc": "2.0", **frame}, separators=(",", ":")).encode() + b"\n")


def put(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def update(session: str, kind: str, **fields: Any) -> None:
    write(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": kind, **fields}})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def act(session: str, prompt: str) -> None:
    global said
    said += 1
    word, *rest = prompt.split()
    count = int(rest[0]) if rest and rest[0].isdigit() else 0
    filling = "x" * (int(rest[1]) if len(rest) > 1 and rest[1].isdigit() else count)
    match word:
        case "text":
            for _ in range(count):
                update(session, "agent_message_chunk", messageId=f"m{said}", content=text(filling))
        case "call":
            update(session, "tool_call_update", toolCallId=f"t{said}", title="T", status="completed")
            content = {"type": "content", "content": text(filling)}
            for _ in range(count):
                update(session, "tool_call_content_chunk", toolCallId=f"t{said}", content=content)
        case "output":
            data = base64.b64encode(filling.encode()).decode()
            for _ in range(count):
                update(session, "terminal_output_chunk", terminalId=f"o{said}", data=data)
        case "raw":
            update(session, "tool_call_update", toolCallId=f"t{said}", title="T", rawOutput=filling)
        case "strangers":
            for number in range(count):
                update(f"stranger-{number}", "agent_message_chunk", messageId="m", content=text("x"))
        case "unknown":
            frame = json.dumps({"jsonrpc": "2.0", "method": "weather", "params": {}}).encode() + b"\n"
            put(frame * count)
        case "answers":
            put(b'{"jsonrpc":"2.0","id":"nobody","result":{}}\n' * count)
        case "noise":
            put(b"no JSON at all\n" * count)
        case "questions":
            options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
            asked = {"sessionId": session, "title": "T", "options": options, "subject": {"type": "x"}}
            update(session, "state_update", state="requires_action")
            for number in range(count):
                write(id=f"q{number}", method="session/request_permission", params=asked)
        case _:
            update(session, "agent_message_chunk", messageId=f"m{said}", content=text(prompt))


def speak() -> None:
    sessions = 0
    for line in sys.stdin:
        match json.loads(line):
            case {"id": id, "method": "initialize"}:
                write(id=id, result={"protocolVersion": 2, "info": INFO, "capabilities": {"session": {}}})
            case {"id": id, "method": "session/new"}:
                sessions += 1
                write(id=id, result={"sessionId": f"session-{sessions}"})
            case {"id": id, "method": "session/prompt", "params": params}:
                session, content = params["sessionId"], params["prompt"]
                write(id=id, result={"messageId": f"prompt-{id}"})
                update(session, "user_message", messageId=f"prompt-{id}", content=content)
                update(session, "state_update", state="running")
                act(session, content[0]["text"])
                update(session, "state_update", state="idle", stopReason="end_turn")
            case {"id": id, "method": _}:
                write(id=id, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    speak()
