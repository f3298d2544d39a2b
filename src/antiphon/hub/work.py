"""UpstreamWork: the worker of a hub session, as its parts see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from antiphon.engine.events import AnyBody
from antiphon.engine.session import Session
from antiphon.hub.bringing import Place
from antiphon.hub.feed import UpstreamFeed, UpstreamReader
from antiphon.hub.upstream import Upstream
from antiphon.live.session import LiveSession
from antiphon.schema import v2


class UpstreamBinding(Protocol):
    """Where the work of a session is done."""

    agent: str
    feed: UpstreamFeed | None
    upstream: Upstream | None
    mark: str

    @property
    def is_untold(self) -> bool:
        """Whether the agent has to be told, with the next prompt, what was said so far."""

    async def bring(self, *, may_lose_options: bool = False) -> UpstreamFeed: ...
    def note_told(self) -> None: ...


class UpstreamWork(UpstreamReader, Protocol):
    @property
    def id(self) -> str: ...
    @property
    def fold(self) -> Session: ...
    @property
    def live(self) -> LiveSession: ...
    @property
    def binding(self) -> UpstreamBinding: ...
    @property
    def inserts(self) -> bool: ...
    @property
    def cancelling(self) -> bool:
        """Whether what is open was cancelled and has not ended."""

    @property
    def place(self) -> Place: ...
    def emit(self, bodies: Sequence[AnyBody]) -> None: ...
    def attempt(self, act: Callable[[], None]) -> None:
        """Call `act`; errors of a session that is being put away are ignored."""

    def advance(self) -> None: ...
    def cancel(self, *, message_id: str | None = None, meta: dict[str, Any] | None = None) -> None: ...
    def apply(
        self, update: v2.SessionUpdate, original: bytes | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        """Commit an update of the agent."""

    def show(
        self, update: v2.SessionUpdate, original: bytes | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        """Commit an update of the agent that is no state."""

    def prompt_left(self) -> None:
        """Note that a prompt is not on its way to the agent any more."""

    def agents_message_id(self, message_id: str) -> str | None:
        """Return the id that the agent has for a message; `None` for one of an earlier session there."""

    async def bind(
        self,
        upstream: Upstream,
        feed: UpstreamFeed,
        *,
        again: bool,
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """Work at this session of an agent from here on. `again`: the agent had the session before, so its
        events until now are a replay. `begun` is called between what the agent's answer says and what the
        agent sent besides."""

    def join_parent(self, upstream: Upstream, feed: UpstreamFeed, names: dict[str, str]) -> None:
        """Work for another session, at its agent. `names` are the ids here by those at the agent."""

    def leave_parent(self) -> None:
        """The agent of the parent is gone."""
