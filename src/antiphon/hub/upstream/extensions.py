"""ExtensionRelay: extension methods and notifications of clients, for the agents behind the hub.

A method that names a session goes to its agent, with the id that the agent knows it by (EXT-01, 24.2). One
that names none goes to the agent that works unless another is chosen. Our own methods stay here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from antiphon.connection import Connection
from antiphon.errors import AntiphonError
from antiphon.hub.upstream.agent_extensions import renamed
from antiphon.hub.upstream.errors import to_request_error
from antiphon.hub.upstream.pool import UpstreamPool
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.schema.methods import OWN
from antiphon.server.request import FindSession
from antiphon.server.session import ServedSession

AnswerOurs = Callable[[str, Any], Awaitable[Any]]
"""Answers a method of our own, which no agent has anything to do with. Raises `MethodNotFound`."""


class ExtensionRelay:
    """Passes extension methods and notifications of clients on to the agents."""

    def __init__(
        self,
        upstreams: UpstreamPool,
        default: str,
        answer_ours: AnswerOurs,
        bring: Callable[[ServedSession], Awaitable[UpstreamSession]],
    ) -> None:
        """`default`: the agent for what names no session. `bring` returns a session at its
        agent, which is started if it does not run."""
        self._upstreams = upstreams
        self._default = default
        self._answer_ours = answer_ours
        self._bring = bring

    async def call(self, find: FindSession, method: str, params: Any) -> Any:
        if method.startswith(OWN):
            return await self._answer_ours(method, params)
        named = find()
        try:
            connection, there = await self._reach(named)
            result = await connection.call(method, renamed(params, there))
        except (AntiphonError, OSError) as error:
            raise to_request_error(error) from error
        return renamed(result, None if there is None else params["sessionId"])

    async def notified(self, find: FindSession, method: str, params: Any) -> None:
        if not method.startswith(OWN):
            connection, there = await self._reach(find())
            await connection.notify(method, renamed(params, there))

    async def _reach(self, named: ServedSession | None) -> tuple[Connection, str | None]:
        """Return the agent, and the id that it has for the session, if one is named."""
        if named is not None:
            at_agent = await self._bring(named)
            return at_agent.agent.connection, at_agent.id
        return (await self._upstreams.spare(self._default)).agent.connection, None
