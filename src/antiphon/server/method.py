"""Method: one row of the method table, and the roles that it names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from antiphon.schema.methods import OWN

if TYPE_CHECKING:  # `antiphon tokens` needs `Role`, and none of the types of the protocol
    from antiphon.server.offer import Offer


class Role(StrEnum):
    OBSERVER = "observer"
    """Reads: lists, replays and follows. Is never asked anything."""
    CONTROLLER = "controller"
    """Also prompts, cancels, answers and configures."""
    OWNER = "owner"
    """Also deletes, closes for all, and chooses how an agent is logged in and where it gets its models."""

    METRICS = "metrics"
    """Reads the numbers at `/metrics`, and may do nothing with sessions."""

    def includes(self, other: Role) -> bool:
        return self in RANKS and other in RANKS and RANKS.index(self) >= RANKS.index(other)


RANKS = (Role.OBSERVER, Role.CONTROLLER, Role.OWNER)
"""The roles of clients: each may do what the one before it may."""


class Lane(StrEnum):
    """Where a method runs: what is in one lane begins in the order in which it was received."""

    SESSION = "session"
    """In the lane of the session that its params name; in that of the connection where they name none."""
    CONNECTION = "connection"


class Opens(StrEnum):
    """How a method sets up a session: then its params may declare MCP servers of the client."""

    NEW = "new"
    """The session has its id once it is made."""
    EXISTING = "existing"


class Act(StrEnum):
    """What the audit log calls a method."""

    PROMPT = "prompt"
    CANCEL = "cancel"
    ANSWER = "answer"
    ANNOTATE = "annotate"
    CONFIG = "config"
    CREATE = "create"
    EXPORT = "export"
    LINK = "link"
    SUBSCRIBE = "subscribe"
    CLOSE = "close"
    ARCHIVE = "archive"
    DELETE = "delete"
    LOGIN = "login"
    CALL = "call"
    """An extension method, or one of ours that only reads."""
    READ = "read"


class Method(Struct, frozen=True):
    """What is known of one method of clients."""

    name: str
    handler: Callable[[Any], Awaitable[Any]] | None = None
    """Gets a `Request` and returns the result. `None`: the connection answers it, or refuses it."""
    notified: Callable[[Any], None] | None = None
    """Gets the `Request` of a notification, which has no answer."""
    lane: Lane = Lane.SESSION
    role: Role = Role.OWNER
    """The least role that may call it."""
    act: Act = Act.READ
    login: bool = True
    """Whether a connection has to be logged in for it, where the agent requires that (AUTH-18)."""
    subagents: bool = False
    """Whether it may name a session that works for another one (SUB-02)."""
    opens: Opens | None = None
    sessionless: bool = False
    """Whether a client may call it whose token is for some sessions only, although it names none."""
    leads_elsewhere: bool = False
    """Whether it leads to other sessions than the one it names: such a client may not call it."""
    counts_as_search: bool = False
    """Whether the limit of searches in a minute counts it."""
    counts_as_prompt: bool = False
    """Whether the limit of prompts in a minute counts it."""
    offered: Callable[[Offer], bool] | None = None
    """Whether a server has it, by what it offers; `None`: every server does."""

    @property
    def is_act(self) -> bool:
        """Whether the audit log lists it also where it is allowed, or fails."""
        return self.act not in (Act.READ, Act.CALL)

    @property
    def is_foreign(self) -> bool:
        """Whether it is an extension method that is not ours."""
        return self.name.startswith("_") and not self.name.startswith(OWN)
