"""McpCalls: the MCP servers that one client offers over its own connection (MCP over ACP, unstable)."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from msgspec import structs

from antiphon.connection import Connection
from antiphon.errors import McpError
from antiphon.schema import v1, v2
from antiphon.schema.mcp_over_acp import MESSAGE
from antiphon.server.ids import new_id

logger = logging.getLogger("antiphon.server")

MOST_DECLARED = 4096
"""Declarations of one client that are remembered."""
_declarations = itertools.count()

OnNotification = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Called with the method and the params of a notification of an MCP server while a request is under way."""

OnMessage = Callable[[Any], Awaitable[None]]
"""The same with the params of `mcp/message`, unchanged."""


class McpCalls:
    """Calls the MCP servers of one client over its connection."""

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
        """Call an MCP server, under a new operation id (MCPACP-03). The client learns if the caller gives up
        (MCPACP-07)."""
        request = v2.MessageMcpRequest(
            server_id=v2.McpServerAcpId(server_id),
            request_id=v2.McpRequestId(new_id("op")),
            method=method,
            params=params,
            meta=meta,
        )
        if on_notification is None:
            return _result(await self._connection().call(MESSAGE, request))

        async def on_message(message: Any) -> None:
            await on_notification(message.method, message.params or {})

        return _result(await self.ask(request, on_message))

    async def ask(self, request: v1.MessageMcpRequest | v2.MessageMcpRequest, on_message: OnMessage) -> Any:
        """Return the answer to an operation unchanged. `on_message` gets the notifications before it.

        Agents choose the ids of operations: one that another agent has in use here is sent under another."""
        connection = self._connection()
        given = request.request_id
        while (key := (str(request.server_id), str(request.request_id))) in self._routes:
            other: Any = f"{given}~{secrets.token_hex(3)}"
            request = structs.replace(request, request_id=other)

        outcome: Any = None

        def answered(result: Any) -> None:
            nonlocal outcome
            outcome = result
            # Notifications before the answer are before it in the lane, and later ones behind it.
            connection.after_received(None, partial(self._end_route, key))

        call = connection.begin(MESSAGE, request, answered)
        route = self._routes[key] = asyncio.Queue()
        try:
            while (message := await route.get()) is not None:
                try:
                    await on_message(structs.replace(message, request_id=given))
                except Exception:
                    logger.exception("notification of an MCP server could not be handled")
        finally:
            self._end_route(key)
            connection.abandon(call)  # MCPACP-07: does nothing if it was answered
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _end_route(self, key: tuple[str, str]) -> None:
        route = self._routes.pop(key, None)
        if route is not None:
            route.put_nowait(None)


def _result(answer: Any) -> Any:
    if isinstance(answer, v1.MessageMcpFailure | v2.MessageMcpFailure):
        error = answer.error
        raise McpError(error.code, error.message, data=error.data)
    return answer.result
