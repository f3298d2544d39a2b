"""An agent, without Antiphon, that writes hostile text into every field that the schema has.

The prompt says what it does: `tell` sends every update, `ask` puts every kind of permission (`ask few`: one
of each subject), `form` and `visit` ask for a form and an address. The turn ends with a stop reason nobody
knows, or as `fail` with an error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.text.hostile_fields import HOSTILE, permissions, updates

asked = 0


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def tell(session: str, tag: str, **update: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": tag, **update}})


def ask(method: str, params: dict[str, Any]) -> None:
    global asked
    asked += 1
    send(id=f"asked-{asked}", method=method, params=params)
    while json.loads(sys.stdin.readline()).get("id") != f"asked-{asked}":
        pass


def form() -> dict[str, Any]:
    text = {"type": "string", "title": HOSTILE, "description": HOSTILE}
    one = [{"const": HOSTILE, "title": HOSTILE, "description": HOSTILE}]
    properties = {
        HOSTILE: {**text, "format": HOSTILE, "default": HOSTILE},
        "one": {**text, "oneOf": one, "default": HOSTILE},
        "many": {"type": "array", "title": HOSTILE, "items": {"anyOf": one}, "default": [HOSTILE]},
        "odd": {"type": HOSTILE, "title": HOSTILE},
    }
    return {"type": "object", "title": HOSTILE, "description": HOSTILE, "properties": properties}


def play(session: str, way: str) -> None:
    if way == "tell":
        for tag, update in updates():
            tell(session, tag, **update)
    elif way.startswith("ask"):
        every = permissions()
        kinds = {str(params["subject"].get("type")): params for params in every}
        for params in kinds.values() if way == "ask few" else every:
            ask("session/request_permission", {**params, "sessionId": session})
    elif way == "form":
        about = {"mode": "form", "sessionId": session, "message": HOSTILE, "requestedSchema": form()}
        ask("elicitation/create", about)
    elif way == "visit":
        url = f"https://x\u0430mple.example/{HOSTILE}"
        about = {
            "mode": "url",
            "sessionId": session,
            "message": HOSTILE,
            "url": url,
            "elicitationId": "e",
        }
        ask("elicitation/create", about)


def prompted(id: Any, params: dict[str, Any]) -> None:
    session = params["sessionId"]
    way = params["prompt"][-1]["text"]
    send(id=id, result={"messageId": f"user-{id}"})
    tell(session, "user_message", messageId=f"user-{id}", content=params["prompt"])
    tell(session, "state_update", state="running")
    play(session, way)
    error = (
        {"error": {"code": -32603, "message": HOSTILE, "data": {HOSTILE: HOSTILE}}} if way == "fail" else {}
    )
    tell(session, "state_update", state="idle", stopReason="error" if error else HOSTILE, **error)


def main() -> None:
    print(HOSTILE, file=sys.stderr, flush=True)
    for line in sys.stdin:
        frame = json.loads(line)
        method, id = frame.get("method"), frame.get("id")
        if id is None or method is None:
            continue
        if method == "initialize":
            info = {"name": HOSTILE, "title": HOSTILE, "version": HOSTILE}
            send(id=id, result={"protocolVersion": 2, "info": info, "capabilities": {"session": {}}})
        elif method == "session/new":
            send(id=id, result={"sessionId": f"{HOSTILE}{id}"})
        elif method == "session/prompt":
            prompted(id, frame["params"])
        elif method in ("session/load", "session/resume", "session/close"):
            send(id=id, result={})
        else:
            send(id=id, error={"code": -32601, "message": HOSTILE, "data": HOSTILE})


if __name__ == "__main__":
    main()
