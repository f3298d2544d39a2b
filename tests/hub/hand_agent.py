"""An agent without Antiphon whose turns last until they are told to end: `python hand_agent.py [SETTING]`.

SETTING is JSON: `version` (1 or 2), `answer` (`id`: a prompt is answered `{messageId}`; `empty`: `{}`),
`echo` (`whole`, `chunks` or `never`: how a prompt is shown as a message), `early` (shown before the answer),
`busy` (`hold`: a prompt that comes in a turn is answered when it is inserted, after that turn; `insert`: at
once, into the turn), `delivery` (delivery modes it announces), `proposed` (v2 as first proposed), `keeps` (it
can bring sessions back), `forks_at` (it can fork at a message).

The messages of prompts have the ids `u1`, `u2`, … `_hand/end` ends the open turn; the agent says `done: ` and
the texts of its prompts. `_hand/say {update}` says an update, `_hand/ask {method, params}` asks something,
`_hand/die` ends the process. `_hand/heard` is answered with what came, in order.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SETTING: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
VERSION = SETTING.get("version", 2)
BUSY = SETTING.get("busy", "hold")
heard: list[Any] = []
held: list[tuple[Any, str, list[Any]]] = []
turn: list[tuple[Any, str]] | None = None
"""The prompts of the open turn: their request ids and texts."""
shown = 0
asked = 0


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def say(session: str, kind: str, **said: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": kind, **said}})


def state(session: str, state: str, **said: Any) -> None:
    if SETTING.get("proposed"):
        said = {"stop_reason" if key == "stopReason" else key: value for key, value in said.items()}
    say(session, "state_change" if SETTING.get("proposed") else "state_update", state=state, **said)


def text_of(prompt: list[Any]) -> str:
    return " ".join(block.get("text", "") for block in prompt)


def show(session: str, id: str, prompt: list[Any]) -> None:
    match SETTING.get("echo", "whole"):
        case "whole":
            say(session, "user_message", messageId=id, content=prompt)
        case "chunks":
            for block in prompt:
                say(session, "user_message_chunk", messageId=id, content=block)


def insert(request: Any, session: str, prompt: list[Any]) -> None:
    """The prompt becomes a message of the open turn, or opens one."""
    global turn, shown
    shown += 1
    opens = turn is None
    turn = [*(turn or []), (request, text_of(prompt))]
    if VERSION == 1:
        if SETTING.get("echo") == "chunks":
            show(session, f"u{shown}", prompt)
        return
    if SETTING.get("early"):
        show(session, f"u{shown}", prompt)
    send(id=request, result={} if SETTING.get("answer") == "empty" else {"messageId": f"u{shown}"})
    if not SETTING.get("early"):
        show(session, f"u{shown}", prompt)
    if opens:
        state(session, "running")


def end(session: str, reason: str = "end_turn") -> None:
    global turn
    ended, turn = turn or [], None
    said = {"type": "text", "text": "done: " + " + ".join(text for _, text in ended)}
    if VERSION == 1:
        say(session, "agent_message_chunk", content=said)
        for request, _ in ended:
            send(id=request, result={"stopReason": reason})
        return
    say(session, "agent_message", messageId=f"a{shown}", content=[said])
    state(session, "idle", stopReason=reason)
    if held:
        insert(*held.pop(0))


def give_back(request: Any) -> None:
    for one in [one for one in held if one[0] == request]:
        held.remove(one)
        send(id=request, error={"code": -32800, "message": "Request cancelled"})


def initialized() -> dict[str, Any]:
    named = {"name": "hand", "version": "1"}
    ours = {"delivery": SETTING["delivery"]} if "delivery" in SETTING else {}
    ours |= {"forkAt": True} if SETTING.get("forks_at") else {}
    meta = {"_meta": {"antiphon": ours}} if ours else {}
    if VERSION == 1:
        able = {"loadSession": bool(SETTING.get("keeps")), **meta}
        return {"protocolVersion": 1, "agentInfo": named, "agentCapabilities": able}
    session: dict[str, Any] = {"fork": {}, **({"resume": {}} if SETTING.get("keeps") else {})}
    return {"protocolVersion": 2, "info": named, "capabilities": {"session": session, **meta}}


def prompted(id: Any, params: dict[str, Any]) -> None:
    heard.append(["session/prompt", text_of(params["prompt"]), (params.get("_meta") or {}).get("antiphon")])
    if turn is not None and VERSION == 2 and BUSY == "hold":
        held.append((id, params["sessionId"], params["prompt"]))
    else:
        insert(id, params["sessionId"], params["prompt"])


def request(method: str, id: Any, params: dict[str, Any]) -> None:
    global shown
    match method:
        case "initialize":
            send(id=id, result=initialized())
        case "session/prompt":
            prompted(id, params)
        case "_hand/heard":
            send(id=id, result={"heard": heard, "held": len(held)})
        case "session/new" | "session/load" | "session/resume" | "session/fork" | "session/close":
            heard.append([method, params.get("_meta")])
            if method in ("session/load", "session/resume"):
                shown = 10  # what another process has shown keeps its id
            begins = method in ("session/new", "session/fork")
            send(id=id, result={"sessionId": f"hand-{len(heard)}"} if begins else {})
        case _:
            send(id=id, error={"code": -32601, "message": "Method not found"})


def notified(method: str, params: dict[str, Any]) -> None:
    session = params.get("sessionId", "")
    match method:
        case "session/cancel":
            heard.append([method])
            for one in list(held):
                give_back(one[0])
            if turn is not None:
                end(session, "cancelled")
        case "$/cancel_request":
            heard.append([method])
            give_back(params["requestId"])
        case "_hand/end":
            end(session)
        case "_hand/say":
            send(method="session/update", params={"sessionId": session, "update": params["update"]})
        case "_hand/ask":
            ask(params["method"], params["params"])
        case "_hand/die":
            os._exit(1)


def ask(method: str, params: Any) -> None:
    global asked
    asked += 1
    send(id=f"ask-{asked}", method=method, params=params)


for line in sys.stdin:
    frame = json.loads(line)
    if "method" not in frame:
        heard.append(["answer", frame.get("result")])
    elif "id" in frame:
        request(frame["method"], frame["id"], frame.get("params") or {})
    else:
        notified(frame["method"], frame.get("params") or {})
