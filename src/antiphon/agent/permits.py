"""Permits: what the client of one connection may do. Everything, unless whoever serves it says otherwise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from antiphon.engine.questions import Question
from antiphon.jsonrpc.peer import Inbound

if TYPE_CHECKING:
    from antiphon.agent.link import Handlers, Link
    from antiphon.agent.session import AgentSession


class Permit:
    acts = True
    """Whether its client does more than look on: only then it is asked, and a session set up as it says."""

    sees_all = True
    """Whether there is no session that it is not told of."""

    credential: str | None = None
    """The name of the token that the client's connection came with, as the audit log names it."""

    tells: Mapping[str, Any] = {}
    """What the client is told of it when it comes, under our own key of the answer to `initialize`."""

    def stands(self) -> bool:
        """Whether what the client says still counts: it may be about to be sent away."""
        return True

    async def admit(self, link: Link, method: str, params: Any, size: int) -> Any:
        """The params to go on with, which had `size` bytes; raises where this may not be done. Waits for
        nothing that it need not wait for: a handler begins in the order in which it was called."""
        return params

    def hears(self, link: Link, method: str, params: Any) -> bool:
        """Whether a notification of the client counts."""
        return True

    def failed(self, link: Link, method: str, params: Any, error: Exception) -> None:
        """What was allowed did not work."""

    def shows(self, session_id: str) -> bool:
        """Whether the client is told of a session in a list."""
        return True

    def queues(self, session: AgentSession, message_id: str, size: int) -> None:
        """A prompt of so many bytes is about to wait in a session, or an edit of one. Raises `RequestError`
        where that is too much."""

    def serves(self, session_id: str) -> bool:
        """Whether the agent of a session may ask the client for anything: a file, a terminal, an MCP server,
        an extension."""
        return True

    def answers(self, link: Link, session: AgentSession, question: Question) -> bool:
        """Whether the client is asked a question, and its answer counts."""
        return True


EVERYTHING = Permit()


class Attended(Protocol):
    """A session, as its clients are found."""

    clients: Callable[[], list[Link]]

    @property
    def id(self) -> str: ...


def askable(session: Attended) -> list[Link]:
    """Return the clients that the agent of a session may ask, the oldest first: those that are attached to it
    and may act in it. Whatever an agent asks of clients goes to these and to nobody else."""
    return [link for link in session.clients() if link.permit.serves(session.id)]


def permitted(link: Link, handlers: Handlers) -> Handlers:
    """These, where the client may do what it asks for."""
    permit = link.permit
    if permit is EVERYTHING:
        return handlers

    def guard(handler: Callable[[Any, Inbound], Awaitable[Any]]) -> Callable[[Any, Inbound], Awaitable[Any]]:
        async def call(params: Any, inbound: Inbound) -> Any:
            params = await permit.admit(link, inbound.method, params, inbound.size)
            try:
                return await handler(params, inbound)
            except Exception as error:
                permit.failed(link, inbound.method, params, error)
                raise

        return call

    return {method: guard(handler) for method, handler in handlers.items()}


def heard(link: Link, method: str, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same for a notification: nobody is told of one that does not count."""

    def hear(params: Any) -> Any:
        return handler(params) if link.permit.hears(link, method, params) else None

    return hear
