"""Refusals: what an agent leaves out of mind, because the turn it was said in ended as `refusal`.

The prompt of such a turn and all that comes after it, up to the next prompt, is not in what the agent goes on
from (PROMPT-V1-08). v2 has the same stop reason, and nothing that says it means something else there.
"""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.engine.session import Session
from antiphon.engine.transcript import Message, MessageType


class Refusals:
    def __init__(self, fold: Session) -> None:
        self._fold = fold
        self._turns: dict[int, set[str]] = {}
        """The refused turns: the ids of their user messages, by the number of their first event."""

    def note(self, first: int, prompts: Iterable[str]) -> None:
        """A turn was refused that began with this event and took these user messages."""
        self._turns.setdefault(first, set()).update(prompts)

    @property
    def messages(self) -> list[Message]:
        """What of the session the agent goes on without."""
        messages = self._fold.messages if self._turns else []
        said = [message for message in messages if message.type is MessageType.USER]
        beyond = self._fold.last_seq + 1
        gaps = [
            (first, min((m.position for m in said if m.position > first and m.id not in own), default=beyond))
            for first, own in self._turns.items()
        ]
        return [
            message for message in messages if any(begin <= message.position < end for begin, end in gaps)
        ]
