"""An agent without Antiphon, line by line: `python parrot.py VERSION [SETTING]`.

A prompt's last text is JSON, a list of what it does: `{"update": U}` says U as it is,
`{"notify": [METHOD, PARAMS]}` and `{"ask": [METHOD, PARAMS]}` tell and ask something else (how that was
answered is said in a message), and `{"answer": RESULT}` is what the turn ends with. SETTING is JSON:
`capabilities`, `initialize` (what else its answer to that has), `new` (what the answer to a new session has
beside its id), `proposed` (v2 as first proposed), `late` (a prompt is taken at once, its turn begins with
`_parrot/go`), `mute` (it never says that it runs), `answers` (results by method, for what it does not answer
otherwise; an `error` is one), `refuses` (methods that fail once the file `from` is there), `gate` (a named
pipe: it answers `initialize` once somebody has written into that).

It answers `_parrot/echo` with its params, `_parrot/heard` with what it heard, `_parrot/opening` with the
params of `initialize`, and everything else that it does not know with -32601.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

VERSION = int(sys.argv[1])
SETTING = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
heard: list[Any] = []
opening: dict[str, Any] = {}
sessions: list[str] = []
asked = 0


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    frame: dict[str, Any] = json.loads(line)
    return frame


def here(value: Any, session: str) -> Any:
    """`$session` stands for the id of the session."""
    return json.loads(json.dumps(value).replace("$session", session))


def update(session: str, update: Any, **beside: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": here(update, session), **beside})


def say(session: str, text: str) -> None:
    told = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    update(session, told if VERSION == 1 else {**told, "messageId": f"said-{text[:9]}"})


def ask(session: str, method: str, params: Any) -> None:
    global asked
    asked += 1
    id = f"parrot-{asked}"
    send(id=id, method=method, params=here(params, session))
    while True:
        frame = read()
        if frame.get("id") == id and "method" not in frame:
            outcome = frame.get("result", frame.get("error"))
            say(session, json.dumps(outcome, sort_keys=True))
            return
        handle(frame)


def perform(session: str, prompt: list[Any]) -> dict[str, Any]:
    steps = json.loads([block["text"] for block in prompt if "text" in block][-1])
    answer = {"stopReason": "end_turn"}
    for step in steps:
        if "update" in step:
            update(session, step["update"], **step.get("beside", {}))
        elif "notify" in step:
            send(method=step["notify"][0], params=here(step["notify"][1], session))
        elif "ask" in step:
            ask(session, *step["ask"])
        elif "answer" in step:
            answer = step["answer"]
    return answer


def initialized() -> dict[str, Any]:
    able, beside = SETTING.get("capabilities", {}), SETTING.get("initialize", {})
    named = {"name": "parrot", "version": "1"}
    if VERSION == 1:
        capabilities = {"loadSession": True, **able}
        return {"protocolVersion": 1, "agentInfo": named, "agentCapabilities": capabilities, **beside}
    return {"protocolVersion": 2, "info": named, "capabilities": {"session": {}, **able}, **beside}


def prompted(id: Any, params: dict[str, Any]) -> None:
    session = params["sessionId"]
    if VERSION == 1:
        send(id=id, result=perform(session, params["prompt"]))
        return
    proposed = SETTING.get("proposed", False)
    said = {"sessionUpdate": "user_message", "messageId": f"user-{id}", "content": params["prompt"]}
    name, reason = ("state_change", "stop_reason") if proposed else ("state_update", "stopReason")
    send(id=id, result={} if proposed else {"messageId": f"user-{id}"})
    update(session, said)
    if SETTING.get("late"):
        while (frame := read()).get("method") != "_parrot/go":
            handle(frame)
    if not SETTING.get("mute"):
        update(session, {"sessionUpdate": name, "state": "running"})
    answer = perform(session, params["prompt"])
    update(session, {"sessionUpdate": name, "state": "idle", reason: answer["stopReason"]})


def handle(frame: dict[str, Any]) -> None:
    method, id, params = frame.get("method"), frame.get("id"), frame.get("params", {})
    if id is None or method is None:
        if str(method).startswith("_") or method == "session/cancel":
            heard.append([method, params])
        return
    if method == "initialize":
        opening.update(params)
        if Path(SETTING.get("gate", "")).is_fifo():
            Path(SETTING["gate"]).read_bytes()
        send(id=id, result=initialized())
    elif method in SETTING.get("refuses", ()) and Path(SETTING["from"]).exists():
        send(id=id, error={"code": -32010, "message": f"no {method} any more"})
    elif method in SETTING.get("answers", {}):
        heard.append([method, params])
        answer = here(SETTING["answers"][method], params.get("sessionId", ""))
        send(id=id, **(answer if "error" in answer else {"result": answer}))
    elif method == "session/new":
        sessions.append(f"parrot-session-{len(sessions)}")
        heard.append([method, params])
        send(id=id, result={"sessionId": sessions[-1], **SETTING.get("new", {})})
    elif method in ("session/load", "session/resume", "session/close", "session/set_mode"):
        heard.append([method, params])
        if VERSION == 2 and method == "session/resume":
            update(params["sessionId"], {"sessionUpdate": "state_update", "state": "idle"})
        send(id=id, result={})
    elif method == "session/prompt":
        heard.append([method, params.get("_meta")])
        prompted(id, params)
    elif method == "_parrot/echo":
        send(id=id, result=params)
    elif method == "_parrot/opening":
        send(id=id, result=opening)
    elif method == "_parrot/heard":
        send(id=id, result={"heard": heard})
    else:
        send(id=id, error={"code": -32601, "message": f"no {method}"})


while True:
    handle(read())
