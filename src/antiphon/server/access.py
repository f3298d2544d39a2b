"""AccessPolicy: what the client of one connection may do. Everything, unless a hub says otherwise."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Any, Protocol

from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.server.method import Method


class PolicySession(Protocol):
    """A served session, as a policy sees it."""

    gone: bool

    @property
    def id(self) -> str: ...
    @property
    def fold(self) -> Session: ...
    @property
    def askable_ids(self) -> Collection[str]:
        """The ids of the attached clients that its agent may ask."""


class AccessPolicy:
    acts = True
    """Whether the client does more than read: only then it is asked, and a session set up as it says."""

    sees_all = True
    """Whether the client may know of every session."""

    only: frozenset[str] | None = None
    """The sessions that the client may know of; `None`: every one."""

    credential: str | None = None
    """The name of the token that the client's connection came with, as the audit log names it."""

    introduction: Mapping[str, Any] = {}
    """Goes under our own key of the answer to `initialize`."""

    def is_valid(self) -> bool:
        """Return whether the client is still admitted: one that is about to be cut off does not count."""
        return True

    async def admit(self, method: Method, params: Any, *, size: int, client_id: str) -> Any:
        """Return the params to go on with, which had `size` bytes. Raises where the client may not call this.
        Awaits nothing that it need not await: a handler begins in the order in which it was called."""
        return params

    def admits_notification(self, method: Method, params: Any, *, client_id: str) -> bool:
        """Return whether a notification of the client counts."""
        return True

    def in_progress(self, size: int) -> AbstractContextManager[None]:
        """Count `size` bytes of a request or a notification while the block handles it. Raises `RequestError`
        over a limit."""
        return nullcontext()

    def searching(self) -> AbstractAsyncContextManager[object]:
        """Wait until the client may search, and let no other client of its kind search inside the block."""
        return nullcontext()

    def failed(self, method: Method, params: Any, error: Exception, *, client_id: str) -> None:
        """Note that an admitted request failed."""

    def shows(self, session_id: str) -> bool:
        """Return whether the client sees a session in lists."""
        return True

    def queues(self, session: PolicySession, message_id: str, size: int) -> None:
        """Count a prompt of `size` bytes that is about to wait in a session, or an edit of one. Raises
        `RequestError` over a limit."""

    def serves(self, session_id: str) -> bool:
        """Return whether the agent of a session may ask the client for anything: a file, a terminal, an MCP
        server, an extension."""
        return True

    def answers(self, session: PolicySession, question: Question, *, client_id: str) -> bool:
        """Return whether the client is asked a question, and its answer counts."""
        return True


EVERYTHING = AccessPolicy()
