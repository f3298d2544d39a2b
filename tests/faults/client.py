"""A client by hand for an agent in a process: JSON lines over pipes, and a fold of its own.

Nothing of ours decides here what a session holds: what was seen and what is replayed are put together by
these few lines, and compared.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DEADLINE = 30.0

CHUNKS = {
    "agent_message_chunk": "agent",
    "agent_thought_chunk": "thought",
    "user_message_chunk": "user",
}
WHOLES = {"agent_message": "agent", "agent_thought": "thought", "user_message": "user"}


class Violation(Exception):
    """What may not be, in words."""


def check(holds: object, what: str) -> None:
    if not holds:
        raise Violation(what)


@dataclass
class Transcript:
    """What updates add up to."""

    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    """By kind and id, in the order of first appearance; a tool call's text is its output."""
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    plans: dict[str, int] = field(default_factory=dict)
    """How many entries each has."""
    state: dict[str, Any] = field(default_factory=dict)
    whole: list[tuple[str, str]] = field(default_factory=list)
    """The items that came whole, as they do in a replay, each time they did."""

    def apply(self, update: dict[str, Any]) -> None:
        kind = update["sessionUpdate"]
        if kind in CHUNKS:
            self._add((CHUNKS[kind], update["messageId"]), update["content"]["text"])
        elif kind in WHOLES:
            key = WHOLES[kind], update["messageId"]
            self.texts[key] = "".join(block["text"] for block in update.get("content") or ())
            self.whole.append(key)
        elif kind == "tool_call_content_chunk":
            self._add(("tool", update["toolCallId"]), update["content"]["content"]["text"])
        elif kind == "tool_call_update":
            key = "tool", update["toolCallId"]
            call = self.calls.setdefault(update["toolCallId"], {})
            call.update({name: update[name] for name in ("title", "kind", "status") if name in update})
            content = update.get("content")
            self.texts.setdefault(key, "")
            if content is not None:
                self.texts[key] = "".join(one["content"]["text"] for one in content)
            self.whole.append(key)
        elif kind == "plan_update":
            self.plans[update["plan"]["planId"]] = len(update["plan"]["entries"])
        elif kind == "state_update":
            self.state = update
        else:
            raise Violation(f"an update of a kind that nobody sent: {kind}")

    def _add(self, key: tuple[str, str], text: str) -> None:
        self.texts[key] = self.texts.get(key, "") + text


class Client:
    """One life of the agent's process, and what came out of it."""

    def __init__(self, store: Path, log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.busy_agent", str(store)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._rest = b""
        self._waiting: list[dict[str, Any]] = []

    def send(self, **frame: Any) -> None:
        self._stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
        self._stdin.flush()

    def next(self) -> dict[str, Any]:
        """The next frame."""
        while not self._waiting:
            check(select.select([self._stdout], [], [], DEADLINE)[0], f"the agent is silent for {DEADLINE} s")
            check(self._read(), "the agent ended by itself")
        return self._waiting.pop(0)

    def _read(self) -> bool:
        data = os.read(self._stdout.fileno(), 4096)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._waiting += map(json.loads, lines)
        return bool(data)

    def answer_to(self, id: Any) -> dict[str, Any]:
        """Only where nothing else is on its way."""
        answer = self.next()
        check(answer.get("id") == id and "result" in answer, f"{answer} is no answer to {id}")
        return dict(answer["result"])

    def kill(self) -> list[dict[str, Any]]:
        """SIGKILL; and what was on its way: who wrote it to the pipe has shown it."""
        self._process.kill()
        while self._read():
            pass
        self.close()
        return self._waiting

    def close(self) -> None:
        """End it in any case; what it still says is not heard."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._stdin, self._stdout):
            with suppress(BrokenPipeError):
                pipe.close()
