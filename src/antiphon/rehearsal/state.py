"""What the agent remembers of a session while its process runs, and the size of the session's context."""

from __future__ import annotations

from pathlib import Path
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from antiphon.agent import AgentSession
from antiphon.schema import v2


class Change(Struct, frozen=True):
    """A change to a file at a line. `before` is `None` if the change creates the file."""

    path: Path
    before: str | None
    after: str
    line: int


class Memory(Struct, weakref=True):
    always: set[str] = field(default_factory=set)
    """The kinds of tool calls that the user allowed for the session."""
    edits: list[Change] = field(default_factory=list)
    explained: set[str] = field(default_factory=set)
    """The skills that were explained."""
    forgotten: int = 0
    """Characters that a compaction has removed from the context."""


_memories: WeakKeyDictionary[AgentSession, Memory] = WeakKeyDictionary()


def memory(session: AgentSession) -> Memory:
    return _memories.setdefault(session, Memory())


SIZE = 32_000
"""Tokens that the context of a model would have."""
CHARACTERS = 4
"""Characters per token, roughly, in English."""


def characters(session: AgentSession) -> int:
    """Count the characters of all messages and tool calls of a session."""
    said = sum(len(message.text) for message in session.fold.messages)
    shown = sum(_length(part) for call in session.fold.tool_calls for part in call.content)
    return said + shown


def used(session: AgentSession) -> int:
    """Return the tokens that are in the context now."""
    kept = max(characters(session) - memory(session).forgotten, 0)
    return -(-kept // CHARACTERS)


async def report(session: AgentSession) -> None:
    await session.report_usage(used=used(session), size=SIZE)


def _length(part: v2.ToolCallContent) -> int:
    if isinstance(part, v2.Content) and isinstance(part.content, v2.TextContent):
        return len(part.content.text)
    return 0
