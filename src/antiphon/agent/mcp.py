"""MCP servers that clients offer over their own connections, used by the agent (MCP over ACP, unstable)."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import structs

from antiphon.agent.permits import askable
from antiphon.connection import Connection
from antiphon.errors import InvalidParams, LinkLost, LocalError, McpError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.schema.mcp_binding import MESSAGE, with_inner_meta

if TYPE_CHECKING:
    from antiphon.agent.link import Handlers, Link
    from antiphon.agent.session import AgentSession

logger = logging.getLogger("antiphon.agent")

MAKES = ("session/new", "session/fork")
"""The methods whose session has its id only once it is made."""
MOST_DECLARED = 4096
"""Declarations of one client that are remembered."""
_declarations = itertools.count()

OnNotification = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Called with the method and the params of what an MCP server tells while a request is under way."""

Heard = Callable[[Any], Awaitable[None]]
"""The same with the params of `mcp/message` as they came."""


class Calling:
    """The MCP servers of one client, as they are called over its connection."""

    def __init__(self, connection: Callable[[], Connection]) -> None:
        self._connection = connection
        self._declared: dict[tuple[str, str], int] = {}
        """The ids that this client has published, each with its session, and in which order that was."""
        self._routes: dict[tuple[str, str], asyncio.Queue[Any]] = {}

    def declare(self, session_id: str, server_ids: Iterable[str]) -> None:
        """The client publishes servers for a session. What it published before stays, up to a bound."""
        for server_id in server_ids:
            self._declared.setdefault((session_id, server_id), next(_declarations))
        while len(self._declared) > MOST_DECLARED:
            del self._declared[next(iter(self._declared))]

    def retract(self, session_id: str, server_ids: Iterable[str]) -> None:
        for server_id in server_ids:
            self._declared.pop((session_id, server_id), None)

    def declared(self, session_id: str, server_id: str) -> int | None:
        """Return the place of a declaration among those of all clients; `None` for what was not published."""
        return self._declared.get((session_id, server_id))

    def notified(self, params: v1.MessageMcpNotification | v2.MessageMcpNotification) -> None:
        """What belongs to no request that is under way is dropped (MCPACP-06)."""
        route = self._routes.get((params.server_id, params.request_id))
        if route is not None:
            route.put_nowait(params)

    async def call(
        self,
        server_id: str,
        method: str,
        params: dict[str, Any],
        *,
        meta: dict[str, Any] | None,
        on_notification: OnNotification | None,
    ) -> Any:
        """One operation, under an id of its own (MCPACP-03). Giving up on it tells the client
        (MCPACP-07)."""
        request_id = f"op_{secrets.token_hex(12)}"
        request = v2.MessageMcpRequest(
            server_id=v2.McpServerAcpId(server_id),
            request_id=v2.McpRequestId(request_id),
            method=method,
            params=params,
            meta=meta,
        )
        if on_notification is None:
            return _result(await self._connection().call(MESSAGE, request))

        async def heard(told: Any) -> None:
            await on_notification(told.method, told.params or {})

        return _result(await self.ask(request, heard))

    async def ask(self, request: v1.MessageMcpRequest | v2.MessageMcpRequest, heard: Heard) -> Any:
        """The answer to an operation as it came; `heard` gets what is told before it.

        Agents choose the ids of operations: one that another agent has in use here is sent under another."""
        connection = self._connection()
        given = request.request_id
        while (key := (str(request.server_id), str(request.request_id))) in self._routes:
            other: Any = f"{given}~{secrets.token_hex(3)}"
            request = structs.replace(request, request_id=other)

        async def named(told: Any) -> None:
            await heard(structs.replace(told, request_id=given))

        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settled(outcome: Any) -> None:
            # What was told before the answer stands before it in the lane, and what comes later behind it.
            connection.behind(None, partial(self._close, key))
            if not answered.done():
                answered.set_result(outcome)

        call = connection.begin(MESSAGE, request, settled)
        route = self._routes[key] = asyncio.Queue()
        try:
            telling = asyncio.get_running_loop().create_task(_tell(route, named))
            try:
                outcome = await answered
                await telling
            finally:
                telling.cancel()
                await asyncio.wait([telling])
        finally:
            self._close(key)
            connection.abandon(call)  # MCPACP-07: nothing, where it was answered
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _close(self, key: tuple[str, str]) -> None:
        route = self._routes.pop(key, None)
        if route is not None:
            route.put_nowait(None)


class McpServer:
    """An MCP server of a client. `call` speaks MCP to it, revision 2026-07-28."""

    def __init__(self, session: AgentSession, declared: v2.McpServerAcp, calling: Calling) -> None:
        self._session = session
        self._calling = calling
        self.name = declared.name
        self.server_id = declared.server_id
        self.capabilities: dict[str, Any] = {}
        """What the agent can do as an MCP client; told with every request."""
        self._closed = False

    async def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        on_notification: OnNotification | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Any:
        """The result of an MCP request, such as `tools/list`. Raises `McpError` where the server answers with
        an error, and `CallFailed` where it could not be asked. `meta` goes beside the request; the trace of
        the turn goes with it by itself."""
        if self._closed:
            raise LocalError("this MCP server is used inside its `async with` block")
        inner = with_inner_meta(params, info=self._session.implementation, capabilities=self.capabilities)
        beside = {**self._session.trace, **(meta or {})}
        return await self._calling.call(
            self.server_id, method, inner, meta=beside or None, on_notification=on_notification
        )

    def close(self) -> None:
        self._closed = True


@asynccontextmanager
async def using(session: AgentSession, name: str) -> AsyncIterator[McpServer]:
    """The MCP server of that name, of the client that gave it to the session."""
    found = [server for server in session.mcp_servers if getattr(server, "name", None) == name]
    if not found:
        raise LocalError(f"this session was given no MCP server {name!r}")
    declared = found[0]
    if not isinstance(declared, v2.McpServerAcp):
        raise LocalError(
            f"the MCP server {name!r} is not the client's own: start or reach it as it is described"
        )
    link = provider(session, declared.server_id)
    if link is None:
        raise LinkLost(f"the client that offers the MCP server {name!r} is not there")
    server = McpServer(session, declared, link.calling)
    try:
        yield server
    finally:
        server.close()


def provider(session: AgentSession, server_id: str) -> Link | None:
    """Return the client of a session that provides an MCP server.

    Of several that declared its id, the token that was first has it, so that nobody takes the place of
    another; of that token's connections the last is asked, as the others may be about to be found dead.
    """
    found = [
        (at, link)
        for link in askable(session)
        if (at := link.calling.declared(session.id, server_id)) is not None
    ]
    if not found:
        return None
    _, first = min(found, key=lambda each: each[0])
    same = [link for _, link in found if link.permit.credential == first.permit.credential]
    return max(same, key=lambda link: link.serial)


def guarded(link: Link, handlers: Handlers) -> Handlers:
    """The handlers that set up sessions, which also learn of the client's own MCP servers (MCPACP-01)."""

    def guard(handler: Callable[[Any, Inbound], Awaitable[Any]]) -> Callable[[Any, Inbound], Awaitable[Any]]:
        async def noted(params: Any, inbound: Inbound) -> Any:
            offered = [s for s in params.mcp_servers if isinstance(s, v1.McpServerAcp | v2.McpServerAcp)]
            if not offered:
                return await handler(params, inbound)
            if not link.agent.may_take_mcp_over_acp:
                raise InvalidParams("MCP servers over ACP are not supported")  # MCPCFG-05
            ids = [server.server_id for server in offered]
            if inbound.method in MAKES:
                result = await handler(params, inbound)
                link.calling.declare(result.session_id, ids)
                return result
            new = [id for id in ids if link.calling.declared(params.session_id, id) is None]
            link.calling.declare(params.session_id, new)  # the agent may need them before the answer
            try:
                return await handler(params, inbound)
            except BaseException:
                link.calling.retract(params.session_id, new)
                raise

        return noted

    setting_up = (*MAKES, "session/load", "session/resume")
    return {**handlers, **{method: guard(handlers[method]) for method in setting_up if method in handlers}}


async def _tell(route: asyncio.Queue[Any], heard: Heard) -> None:
    while (told := await route.get()) is not None:
        try:
            await heard(told)
        except Exception:
            logger.exception("what an MCP server told could not be handled")


def _result(answer: Any) -> Any:
    if isinstance(answer, v1.MessageMcpFailure | v2.MessageMcpFailure):
        error = answer.error
        raise McpError(error.code, error.message, data=error.data)
    return answer.result


__all__ = ["Calling", "McpServer", "guarded", "provider", "using"]
