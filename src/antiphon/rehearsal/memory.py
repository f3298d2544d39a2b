"""Memory: what the agent remembers of a session as long as its process lives."""

from __future__ import annotations

from pathlib import Path
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from antiphon.agent import AgentSession


class Edit(Struct, frozen=True):
    """A change to a file; `before` is None where it made the file."""

    path: Path
    before: str | None
    after: str


class Memory(Struct, weakref=True):
    always: set[str] = field(default_factory=set)
    """The kinds of tools that were allowed for good."""
    edits: list[Edit] = field(default_factory=list)
    explained: set[str] = field(default_factory=set)
    """The skills whose part of the protocol was told."""
    forgotten: int = 0
    """The characters that a compaction has put out of its context."""


_memories: WeakKeyDictionary[AgentSession, Memory] = WeakKeyDictionary()


def memory(session: AgentSession) -> Memory:
    found = _memories.get(session)
    if found is None:
        found = _memories[session] = Memory()
    return found
