"""An agent, without Antiphon, that writes what does harm wherever an agent can write.

What it does is the prompt's last word: `everywhere` (each text in a message, a thought, a tool call, a diff,
a terminal, a notice, and many at once in a plan, titles, commands and options), `ask`, `form` and `visit`
(questions made of them), `huge` (10 MB of text), `long` (a diff of a million lines), `wide` (one word).
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.transcripts.hostile import TEXTS

Update = dict[str, Any]
MANY = "\n\n".join(text for text in TEXTS if len(text) < 500)
LINE = "".join(text for text in TEXTS if len(text) < 60)
SVG = base64.b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
).decode()
MEGABYTE = 1024 * 1024
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


def tell(session: str, update_kind: str, /, **update: Any) -> None:
    send(
        method="session/update",
        params={"sessionId": session, "update": {"sessionUpdate": update_kind, **update}},
    )


def ask(method: str, **params: Any) -> None:
    global asked
    asked += 1
    send(id=f"asked-{asked}", method=method, params=params)
    while (frame := read()).get("id") != f"asked-{asked}":
        handle(frame)


def text(value: str) -> Update:
    return {"type": "text", "text": value}


def blocks(value: str) -> list[Update]:
    short = value[:2000]
    return [
        text(value),
        {"type": "image", "data": "AA==", "mimeType": short or "x"},
        {"type": "image", "data": SVG, "mimeType": "image/svg+xml"},
        {
            "type": "image",
            "data": "AA==",
            "mimeType": "image/png",
            "uri": "https://tracker.example/pixel.png",
        },
        {"type": "resource_link", "name": short, "uri": short, "title": short},
        {"type": "resource_link", "name": short, "uri": "javascript:alert(1)"},
        {"type": "resource", "resource": {"uri": short, "text": value}},
        {"type": "_" + short},
    ]


def patch(value: str) -> str:
    lines = value.splitlines() or [""]
    name = "".join(letter for letter in value[:80] if letter.isprintable()) or "x"
    return "\n".join(
        (
            f"diff --git a/{name} b/{name}",
            f"--- a/{name}",
            f"+++ b/{name}",
            f"@@ -1,{len(lines)} +1,{len(lines)} @@ {name}",
            *(f"-{line}" for line in lines),
            *(f"+{line}" for line in lines),
        )
    )


def said(number: int, value: str) -> Iterator[tuple[str, Update]]:
    """One text in everything that a session has many of."""
    path = "/" + value[:2000]
    yield "agent_thought", {"messageId": f"h{number}", "content": [text(value)]}
    yield "terminal_update", {"terminalId": f"x{number}", "command": value, "output": {"data": data(value)}}
    diff = {
        "type": "diff",
        "changes": [
            {"operation": "modify", "path": path},
            {"operation": "move", "oldPath": path, "path": path},
        ],
        "patch": {"format": "git_patch", "text": patch(value)},
    }
    shown = [{"type": "content", "content": block} for block in blocks(value)]
    yield (
        "tool_call_update",
        {
            "toolCallId": f"t{number}",
            "title": value,
            "kind": ("edit", value)[number % 2],
            "status": ("completed", "failed", value)[number % 3],
            "locations": [{"path": path, "line": number}],
            "content": [diff, {"type": "terminal", "terminalId": f"x{number}"}, *shown],
            "rawInput": {value[:200]: value},
            "rawOutput": value,
        },
    )
    yield "notice", {"severity": "warning", "title": value or "x", "description": value}
    yield "agent_message", {"messageId": f"a{number}", "content": blocks(value)}


def data(value: str) -> str:
    return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()


def around(value: str) -> Iterator[tuple[str, Update]]:
    """One text in what a session has once."""
    entries = [{"content": value, "status": "in_progress", "priority": "high"}]
    yield "plan_update", {"plan": {"type": "items", "planId": "p", "entries": entries * 3}}
    command = {"name": value[:300], "description": value, "input": {"type": "unstructured", "hint": value}}
    yield (
        "available_commands_update",
        {"availableCommands": [command, {"name": "good", "description": value}]},
    )
    options = [{"value": value[:300], "name": value, "description": value}, {"value": "b", "name": "B"}]
    option = {"configId": "m", "name": value, "description": value, "type": "select", "currentValue": "b"}
    yield "config_option_update", {"configOptions": [{**option, "options": options}]}
    yield "usage_update", {"used": 1, "size": 2, "cost": {"amount": 1.5, "currency": value[:300]}}
    yield "session_info_update", {"title": value}


def everywhere(session: str) -> None:
    for number, value in enumerate(TEXTS):
        for kind, update in said(number, value):
            tell(session, kind, **update)
    for kind, update in around(LINE):
        tell(session, kind, **update)


def permission(session: str) -> None:
    options = [
        {"optionId": "yes", "name": LINE, "kind": "allow_once"},
        {"optionId": "no", "name": "<img src=x onerror=alert(1)>", "kind": "reject_once"},
    ]
    subject = {"type": "command", "command": MANY, "cwd": "/" + LINE}
    ask(
        "session/request_permission",
        sessionId=session, title=LINE, description=MANY, subject=subject, options=options,
    )  # fmt: skip


def form(session: str) -> None:
    properties = {
        LINE: {"type": "string", "title": LINE, "description": MANY, "default": LINE},
        "choice": {"type": "string", "title": LINE, "oneOf": [{"const": LINE, "title": LINE}]},
        "__proto__": {"type": "boolean", "title": LINE},
        "pattern": {"type": "string", "pattern": "(a+)+$", "default": "a" * 40 + "!"},
        "counted": {
            "type": "string",
            "title": "Counted",
            "default": "a" * 400,
            "pattern": "^a{0,99}a{0,99}a{0,99}a{0,99}a{0,99}b$",
        },
        "looks": {"type": "string", "title": "Looks", "pattern": "(?=(a+)+$)b", "default": "a" * 40 + "!"},
        "many": {"type": "array", "title": LINE, "items": {"type": "string", "enum": [LINE, "b"]}},
    }
    schema = {"type": "object", "title": LINE, "description": MANY, "properties": properties}
    ask("elicitation/create", mode="form", sessionId=session, message=MANY, requestedSchema=schema)


def visit(session: str) -> None:
    for number, url in enumerate(("javascript:alert(1)", "https://x.example/\u202egnp.exe")):
        ask(
            "elicitation/create",
            mode="url", sessionId=session, message=MANY, url=url, elicitationId=f"e{number}",
        )  # fmt: skip


def huge(session: str) -> None:
    """Ten megabytes in a message, one in a title."""
    piece = (MANY + "\n\n") * (MEGABYTE // len(MANY) // 4)
    sent = 0
    while sent < 10 * MEGABYTE:
        tell(session, "agent_message_chunk", messageId="huge", content=text(piece))
        sent += len(piece)
    title = (LINE * (MEGABYTE // len(LINE)))[:MEGABYTE]
    tell(session, "tool_call_update", toolCallId="huge", title=title, kind="read", status="completed")
    tell(session, "session_info_update", title=title)


def long(session: str) -> None:
    """A million lines of a diff, and as many of a terminal."""
    head = "diff --git a/long b/long\n--- a/long\n+++ b/long\n@@ -1,500000 +1,500000 @@\n"
    lines = "".join(f"-{number}\n+{number}<b>\n" for number in range(500_000))
    content = {
        "type": "diff",
        "changes": [{"operation": "modify", "path": "/long"}],
        "patch": {"format": "git_patch", "text": head + lines},
    }
    tell(
        session, "terminal_update", terminalId="long", command="yes", output={"data": data("y\n" * 1_000_000)}
    )
    tell(
        session, "tool_call_update", toolCallId="long", title="long", kind="edit", status="completed",
        content=[content, {"type": "terminal", "terminalId": "long"}],
    )  # fmt: skip


def wide(session: str) -> None:
    word = "w" * 100_000
    for kind, update in said(9999, word):
        tell(session, kind, **update)
    table = "|".join(["wide"] * 400)
    tell(
        session,
        "agent_message",
        messageId="table",
        content=[text(f"{table}\n{table.replace('wide', '---')}\n{table}")],
    )
    tell(
        session,
        "agent_message",
        messageId="code",
        content=[text(f"```\n{word}\n```\n\n# {word}\n\n- {word}")],
    )


def heavy(session: str) -> None:
    """Markdown that would be drawn with far too many elements, or read for ever."""
    texts = (
        "- item\n" * 10_000,
        "```\n```\n" * 8_000,
        "|" + "a|" * 60 + "\n|" + "-|" * 60 + "\n" + ("|" + "1|" * 60 + "\n") * 600,
        "> " * 20_000 + "x",
        "x" * MEGABYTE,
        "# a" + " " * 45_000 + "b",
        "` " + "x" * 45_000 + "`",
        "*a* " * 15_000,
        "[a](https://x.example/) " * 3_000,
    )
    for number, value in enumerate(texts):
        tell(session, "agent_message", messageId=f"heavy{number}", content=[text(value)])


WAYS = {"everywhere": everywhere, "ask": permission, "form": form, "visit": visit, "huge": huge, "long": long,
        "wide": wide, "heavy": heavy}  # fmt: skip


def prompted(id: Any, params: dict[str, Any]) -> None:
    session = params["sessionId"]
    send(id=id, result={"messageId": f"user-{id}"})
    tell(session, "user_message", messageId=f"user-{id}", content=params["prompt"])
    tell(session, "state_update", state="running")
    way = WAYS.get([block["text"] for block in params["prompt"] if "text" in block][-1].split()[-1])
    if way is None:
        tell(session, "agent_message", messageId=f"heard-{id}", content=[text("heard")])
    else:
        way(session)
    tell(session, "state_update", state="idle", stopReason="end_turn")


def handle(frame: dict[str, Any]) -> None:
    method, id, params = frame.get("method"), frame.get("id"), frame.get("params", {})
    if id is None or method is None:
        return
    if method == "initialize":
        info = {"name": "hostile", "title": LINE[:200], "version": "1"}
        send(id=id, result={"protocolVersion": 2, "info": info, "capabilities": {"session": {}}})
    elif method == "session/new":
        send(id=id, result={"sessionId": f"hostile-{id}"})
    elif method in ("session/load", "session/resume", "session/close"):
        send(id=id, result={})
    elif method == "session/prompt":
        prompted(id, params)
    else:
        send(id=id, error={"code": -32601, "message": LINE})


if __name__ == "__main__":
    while True:
        handle(read())
