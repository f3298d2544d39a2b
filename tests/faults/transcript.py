"""A client's fold of its own: what updates add up to, as v2 spells them and as v1 does.

Nothing of ours decides here what a session holds: what was seen and what is replayed are put together by
these few lines, and compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.faults.violation import Violation, check

CHUNKS = {
    "agent_message_chunk": "agent",
    "agent_thought_chunk": "thought",
    "user_message_chunk": "user",
}
WHOLES = {"agent_message": "agent", "agent_thought": "thought", "user_message": "user"}
FINAL = ("completed", "failed", "cancelled")

Key = tuple[str, str]
"""What kind of item, and its id."""


@dataclass
class Transcript:
    texts: dict[Key, str] = field(default_factory=dict)
    """In the order of first appearance; a tool call's text is its output."""
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    plans: dict[str, int] = field(default_factory=dict)
    """How many entries each has."""
    state: dict[str, Any] = field(default_factory=dict)
    """As it was last told; v1 has no word for it."""
    told: Counter[Key] = field(default_factory=Counter)
    """How many updates each item came in; in a replay it is one."""
    _due: bool = False

    @property
    def idle(self) -> bool:
        """Whether nothing is at work and nothing promised: a prompt that was taken is about to be run."""
        working = self.state.get("state", "idle") != "idle" or self.state.get("background")
        return not working and not self._due

    @property
    def running(self) -> set[str]:
        """The tool calls that have not ended."""
        return {id for id, call in self.calls.items() if call.get("status") not in FINAL}

    def apply(self, update: dict[str, Any]) -> None:
        kind = update["sessionUpdate"]
        if kind in CHUNKS:
            self._add((CHUNKS[kind], update["messageId"]), update["content"]["text"])
        elif kind in WHOLES:
            self._put((WHOLES[kind], update["messageId"]), update.get("content") or ())
        elif kind == "tool_call_content_chunk":
            self._add(("tool", update["toolCallId"]), update["content"]["content"]["text"])
        elif kind in ("tool_call_update", "tool_call"):
            self._put_call(update)
        elif kind == "plan_update":
            self.plans[update["plan"]["planId"]] = len(update["plan"]["entries"])
        elif kind == "plan":
            self.plans["main"] = len(update["entries"])
        elif kind == "state_update":
            self.state, self._due = update, False
        else:
            raise Violation(f"an update of a kind that nobody sent: {kind}")

    def _add(self, key: Key, text: str) -> None:
        self.texts[key] = self.texts.get(key, "") + text
        self._tell(key)

    def _put(self, key: Key, blocks: Iterable[dict[str, Any]]) -> None:
        self.texts[key] = "".join(block["text"] for block in blocks)
        self._tell(key)

    def _put_call(self, update: dict[str, Any]) -> None:
        id = update["toolCallId"]
        call = self.calls.setdefault(id, {})
        call.update({name: update[name] for name in ("title", "kind", "status") if name in update})
        self.texts.setdefault(("tool", id), "")
        if update.get("content") is not None:
            self.texts["tool", id] = "".join(one["content"]["text"] for one in update["content"])
        self._tell(("tool", id))

    def _tell(self, key: Key) -> None:
        self.told[key] += 1
        if key[0] == "user" and self.state.get("state", "idle") == "idle":
            self._due = True

    def check_counting(self) -> None:
        """The agent counts in everything it says: a chunk that is missing or doubled breaks the row."""
        for (kind, id), text in self.texts.items():
            if kind == "user":
                continue
            numbers = [int(word) for word in text.split()]
            # A message goes on after its tool call, and counts from 0 again.
            row = numbers.index(0, 1) if kind == "agent" and 0 in numbers[1:] else len(numbers)
            right = [*range(row), *range(len(numbers) - row)]
            check(numbers == right, f"{kind} {id} does not count: {text!r}")
