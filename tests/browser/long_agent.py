"""An agent, without Antiphon, that has much to tell: the prompt `tell N` is answered with N events."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

STEP = 10
"""Events of one part: a message in seven chunks, and a tool call in three updates."""


def send(**frame: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")


def part(number: int) -> Iterator[dict[str, Any]]:
    told = f"Part {number} of what there is to **tell**, with `code` in it: "
    words = f"{told}\n\n```python\nx = {number}  # a part\n```\n".split(" ", 6)
    for word in words:
        text = {"type": "text", "text": word + " "}
        yield {"sessionUpdate": "agent_message_chunk", "messageId": f"m{number}", "content": text}
    call = {"sessionUpdate": "tool_call_update", "toolCallId": f"t{number}"}
    yield {**call, "title": f"Read part {number}", "kind": "read", "status": "pending"}
    yield {**call, "status": "in_progress"}
    yield {**call, "status": "completed"}


def prompted(id: Any, params: dict[str, Any]) -> None:
    def tell(**update: Any) -> None:
        send(method="session/update", params={"sessionId": params["sessionId"], "update": update})

    word, _, count = params["prompt"][-1]["text"].partition(" ")
    send(id=id, result={"messageId": f"user-{id}"})
    tell(sessionUpdate="user_message", messageId=f"user-{id}", content=params["prompt"])
    tell(sessionUpdate="state_update", state="running")
    for number in range(int(count) // STEP if word == "tell" else 0):
        for update in part(number):
            tell(**update)
    heard = [{"type": "text", "text": f"Told {params['prompt'][-1]['text']}."}]
    tell(sessionUpdate="agent_message", messageId=f"heard-{id}", content=heard)
    tell(sessionUpdate="state_update", state="idle", stopReason="end_turn")


for line in sys.stdin:
    frame = json.loads(line)
    method, id = frame.get("method"), frame.get("id")
    if id is None or method is None:
        continue
    if method == "initialize":
        info = {"name": "long", "version": "1"}
        send(id=id, result={"protocolVersion": 2, "info": info, "capabilities": {"session": {}}})
    elif method == "session/prompt":
        prompted(id, frame["params"])
    elif method == "session/new":
        send(id=id, result={"sessionId": f"long-{id}"})
    else:
        send(id=id, result={})
    sys.stdout.flush()
