"""Extension methods: what peers agree on between themselves, under names that begin with `_` (EXT-01)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from antiphon.connection.handlers import RequestHandler
from antiphon.errors import AntiphonError, CallFailed, LinkLost, LocalError, MethodNotFound
from antiphon.jsonrpc.peer import Inbound

if TYPE_CHECKING:
    from antiphon.agent.link import Link
    from antiphon.agent.session import AgentSession

Extension = Callable[[Any, "AgentSession | None"], Awaitable[Any]]
"""Gets the params, any JSON value, and the session that they name, if they do; gives the result."""

E = TypeVar("E", bound=Extension)


class Extending:
    def __init__(self) -> None:
        self._extensions: dict[str, Extension] = {}

    def extension(self, method: str) -> Callable[[E], E]:
        """Decorate what answers requests of a method of your own, such as `_example.com/status`, and hears
        its notifications. Raise `InvalidParams`, or any `RequestError`, to refuse."""
        if not method.startswith("_") or method.startswith("_antiphon/"):
            raise LocalError(f"{method!r} is no extension method: its name begins with `_` and what is yours")
        if method in self._extensions:
            raise LocalError(f"the extension {method!r} has its handler already")

        def keep(handler: E) -> E:
            self._extensions[method] = handler
            return handler

        return keep

    async def extended(self, link: Link, method: str, params: Any) -> Any:
        """A client asks something that the protocol does not have."""
        handler = self._extensions.get(method)
        if handler is None:
            raise MethodNotFound(method)
        return await handler(params, session_in(link, params))

    async def extension_notified(self, link: Link, method: str, params: Any) -> None:
        """A client tells something that the protocol does not have: unknown, it is ignored (EXT-02)."""
        handler = self._extensions.get(method)
        if handler is not None:
            await handler(params, session_in(link, params))


def session_in(link: Link, params: Any) -> AgentSession | None:
    """The session that params name, which the client has to be attached to (RPC-25)."""
    session_id = params.get("sessionId") if isinstance(params, dict) else None
    return link.voice(session_id)[1] if isinstance(session_id, str) else None


def answering(link: Link) -> RequestHandler:
    async def answer(params: Any, inbound: Inbound) -> Any:
        result = await link.agent.extended(link, inbound.method, params)
        link.connection.answer(inbound, result)  # `null` is a result like any other
        return result

    return answer


def hearing(link: Link) -> Callable[[str, Any], Awaitable[None] | None]:
    def heard(method: str, params: Any) -> None:
        if not link.permit.hears(link, method, params):
            return

        async def tell() -> None:
            with suppress(AntiphonError):  # nobody is told what becomes of a notification
                await link.agent.extension_notified(link, method, params)

        link.connection.start_soon(tell())

    return heard


async def ask_clients(links: Sequence[Link], session_id: str | None, method: str, params: Any) -> Any:
    """Ask these clients; the first result counts, and the others are told that theirs is not wanted any more.
    Nobody there, or nobody who knows the method, is `MethodNotFound`; else the first error of who does."""

    async def ask(link: Link) -> Any:
        await _caught_up(link, session_id)
        return await link.ask(method, params)

    asked = [asyncio.ensure_future(ask(link)) for link in links]
    refusal: BaseException = MethodNotFound(method)
    try:
        for answered in asyncio.as_completed(asked):
            try:
                return await answered
            except CallFailed as error:
                if error.error.code != MethodNotFound.code and isinstance(refusal, MethodNotFound):
                    refusal = error
            except LinkLost:
                pass  # it has gone
        raise refusal
    finally:
        for each in asked:
            each.cancel()  # a call that is given up tells its peer
        if asked:
            await asyncio.wait(asked)


def tell_clients(session: AgentSession, method: str, params: Any) -> None:
    """Send a notification to every client of a session: behind all that happened in the session so far, and
    before all that happens later (PROXY-07). Nobody waits for a slow client."""
    seq = session.fold.last_seq
    for link in session.clients():
        link.voices[session.id].notify_at(seq, method, params)
    if session.start is not None:  # the client that begins the session is about to follow it
        session.start.note(seq, method, params)


async def _caught_up(link: Link, session_id: str | None) -> None:
    voice = None if session_id is None else link.voices.get(session_id)
    if voice is not None:
        await voice.caught_up()
