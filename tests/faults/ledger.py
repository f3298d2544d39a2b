"""What the clients of a run asked of the prompt queue, and what they were told."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

DELIVERED = "already_delivered"
UNKNOWN = "unknown_message_id"
NO_TURN = "no_running_turn"


@dataclass(eq=False)
class Prompt:
    """A `session/prompt`, or an `_antiphon/inject`. Its first text is its operation id."""

    operation: str
    delivery: str
    injected: bool
    asked: bool = False
    answered: bool = False
    refused: str | None = None
    message_id: str | None = None
    """As it was answered; v1 is not told."""
    end: str | None = None
    """How its turn ended, as the answer says in v1."""

    @property
    def certain(self) -> bool:
        """Whether it is taken in for sure once it is read: steering needs a turn, if it is injected."""
        return not (self.injected and self.delivery == "steer")

    def answer(self, frame: dict[str, Any]) -> None:
        self.answered = True
        if "error" in frame:
            self.refused = reason_of(frame)
            return
        self.message_id = frame["result"].get("messageId")
        self.end = frame["result"].get("stopReason")


class ChangeKind(StrEnum):
    REPLACE = "replace"
    MOVE = "move"
    REVOKE = "revoke"


@dataclass(eq=False)
class Change:
    """A `replace_inject`, `move_inject` or `revoke_inject`."""

    kind: ChangeKind
    message_id: str
    text: str = ""
    before: str | None = None
    answered: bool = False
    refused: str | None = None

    @property
    def done(self) -> bool:
        return self.answered and self.refused is None

    def answer(self, frame: dict[str, Any]) -> None:
        self.answered = True
        self.refused = reason_of(frame) if "error" in frame else None


@dataclass
class Ledger:
    prompts: dict[str, Prompt] = field(default_factory=dict)
    """By operation id, in the order in which they were first asked."""
    changes: list[Change] = field(default_factory=list)
    sendings: list[list[Prompt]] = field(default_factory=list)
    """What was asked for the first time on each connection, in order."""
    withdrawn: set[str] = field(default_factory=set)
    """Prompts that the journal had as withdrawn at the last kill, which may have taken the answer away."""

    @property
    def injected(self) -> list[str]:
        """The message ids of what was injected."""
        given = [prompt.message_id for prompt in self.prompts.values() if prompt.injected]
        return [id for id in given if id is not None]

    @property
    def revoked(self) -> set[str]:
        answered = {
            change.message_id for change in self.changes if change.kind is ChangeKind.REVOKE and change.done
        }
        return answered | self.withdrawn


def reason_of(frame: dict[str, Any]) -> str:
    """Why a request was refused, in a word."""
    error = frame["error"]
    data = error.get("data")
    return str(data["reason"]) if isinstance(data, dict) and "reason" in data else str(error)
