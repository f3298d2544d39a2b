"""An agent of ACP 1 that keeps its sessions in a file, standard library only.

    python old_agent.py FILE [--other-ids] [--no-ids] [--die] [--hang] [--noise] [--login] [--terminal-only]

On `session/load` it replays everything, by `--other-ids` under other message ids than it had given, by
`--no-ids` without any. Its mode and its options it does not keep. `--die` ends it at its start, with words
on stderr; `--hang` lets it answer nothing; `--noise` lets it print what is no protocol. `--login` wants a
login before anything, which it forgets with its process; `--terminal-only` one that only a terminal can do.
Where a file `FILE.broken` (in place of its suffix) is, it dies by every load; where `FILE.hang` is, it
answers nothing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FILE = Path(sys.argv[1])
MODES = ["ask", "code"]


def write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def send(**frame: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **frame}))


class Kept:
    """Several processes may keep sessions in one file, each its own."""

    @property
    def said(self) -> dict[str, list[list[str]]]:
        return json.loads(FILE.read_text()) if FILE.exists() else {}

    def add(self, session: str, *said: list[str]) -> None:
        now = self.said
        now.setdefault(session, []).extend(said)
        beside = FILE.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(now))
        os.replace(beside, FILE)


kept = Kept()
mode, model, logged_in = "ask", "small", "--login" not in sys.argv and "--terminal-only" not in sys.argv


def update(session: str, kind: str, **fields: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": kind, **fields}})


def setting() -> dict[str, Any]:
    return {
        "modes": {"currentModeId": mode, "availableModes": [{"id": one, "name": one} for one in MODES]},
        "configOptions": [
            {
                "id": "model",
                "name": "Model",
                "type": "select",
                "currentValue": model,
                "options": [{"value": one, "name": one} for one in ("small", "large")],
            }
        ],
    }


def initialized() -> dict[str, Any]:
    methods: list[dict[str, Any]] = []
    if "--login" in sys.argv:
        methods = [{"id": "key", "name": "A key"}]
    if "--terminal-only" in sys.argv:
        methods = [{"id": "tty", "name": "In a terminal", "type": "terminal", "args": ["login"]}]
    auth = {"auth": {"logout": {}}} if "--login" in sys.argv else {}
    return {
        "protocolVersion": 1,
        "agentCapabilities": {"loadSession": True, **auth},
        "authMethods": methods,
    }


def replay(session: str) -> None:
    for number, (kind, text) in enumerate(kept.said[session]):
        ids = {} if "--no-ids" in sys.argv else {"messageId": f"m-{number}"}
        if "--other-ids" in sys.argv:
            ids = {"messageId": f"again-{time.time_ns()}"}
        update(session, kind, content={"type": "text", "text": text}, **ids)


def prompt(id: Any, session: str, text: str) -> None:
    global mode
    word = text.splitlines()[-1]
    number = len(kept.said.get(session, ()))
    said = f"{mode} {model} heard {word}"
    kept.add(session, ["user_message_chunk", text], ["agent_message_chunk", said])
    if word == "die":
        print("out of luck", file=sys.stderr, flush=True)
        sys.exit(3)
    ids = {} if "--no-ids" in sys.argv else {"messageId": f"m-{number + 1}"}
    update(session, "agent_message_chunk", content={"type": "text", "text": said}, **ids)
    send(id=id, result={"stopReason": "end_turn"})


def main() -> None:
    global mode, model, logged_in
    if "--die" in sys.argv:
        print("cannot find my settings", "giving up", sep="\n", file=sys.stderr, flush=True)
        sys.exit(7)
    while line := sys.stdin.readline():
        if "--hang" in sys.argv or FILE.with_suffix(".hang").exists():
            continue
        frame = json.loads(line)
        id, params = frame.get("id"), frame.get("params", {})
        if "--noise" in sys.argv:
            write("loading… 100%")
            write('{"level":"info","msg":"ready"}')
        method = frame.get("method") or ""
        if method.startswith("session/") and id is not None and not logged_in:
            send(id=id, error={"code": -32000, "message": "Authentication required"})
            continue
        match method:
            case "initialize":
                send(id=id, result=initialized())
            case "authenticate":
                logged_in = True
                send(id=id, result={})
            case "logout":
                logged_in = False
                send(id=id, result={})
            case "session/new":
                session = f"old-{len(kept.said) + 1}"
                kept.add(session)
                send(id=id, result={"sessionId": session, **setting()})
            case "session/load" if FILE.with_suffix(".broken").exists():
                print("cannot read it", file=sys.stderr, flush=True)
                sys.exit(4)
            case "session/load":
                if params["sessionId"] not in kept.said:
                    send(id=id, error={"code": -32002, "message": "no such session"})
                    continue
                replay(params["sessionId"])
                send(id=id, result=setting())
            case "session/set_mode":
                mode = params["modeId"]
                send(id=id, result={})
            case "session/set_config_option":
                model = params["value"]
                send(id=id, result={"configOptions": setting()["configOptions"]})
            case "session/prompt":
                prompt(id, params["sessionId"], "\n".join(block["text"] for block in params["prompt"]))
            case _ if id is not None:
                send(id=id, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    main()
