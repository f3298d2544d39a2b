"""PromptEcho: a user message of the agent that may be a prompt it was sent, before it has answered.

An agent may show a prompt before it takes it (PROMPT-V2-05), whole or in pieces. The message is held back
until it is known to be the prompt: by its words, by the answer that names it, or by what comes next. Until
then nobody can tell whose message it is, and a v1 client must not be shown its own prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from antiphon.bridge.upgrade.echoes import Said, said
from antiphon.schema import v2

UserUpdate = v2.UserMessage | v2.UserMessageChunk


class Held(NamedTuple):
    """An update with what the hub was told beside it."""

    update: UserUpdate
    original: bytes | None
    meta: dict[str, Any] | None


class PromptEcho:
    def __init__(self) -> None:
        self._held: list[Held] = []

    def __bool__(self) -> bool:
        return bool(self._held)

    @property
    def message_id(self) -> str | None:
        return self._held[0].update.message_id if self._held else None

    def hold(self, held: Held) -> None:
        self._held.append(held)

    def repeats(self, written: Sequence[v2.ContentBlock]) -> bool:
        """Whether what is held says all of a prompt."""
        return self._said().repeats(said(written))

    def is_part_of(self, written: Sequence[v2.ContentBlock]) -> bool:
        """Whether what is held says a part of a prompt."""
        return self._said().is_part_of(said(written))

    def release(self) -> list[Held]:
        held, self._held = self._held, []
        return held

    def _said(self) -> Said:
        blocks: list[Any] = []
        for update, *_ in self._held:
            if isinstance(update, v2.UserMessageChunk):
                blocks.append(update.content)
            elif update.content is not UNSET and update.content is not None:
                blocks = list(update.content)
        return said(blocks)
