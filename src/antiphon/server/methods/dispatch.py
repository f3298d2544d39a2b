"""Dispatch: every request of a client passes through here, with its row of the method table."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from antiphon.connection import ConnectionOptions
from antiphon.connection.sessions import session_of
from antiphon.errors import AntiphonError, InvalidParams
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.server.access import EVERYTHING
from antiphon.server.connection import ClientConnection, MethodHandlers
from antiphon.server.method import Method, Opens
from antiphon.server.methods import extensions
from antiphon.server.methods.table import METHODS, lane_of, meant_by, method_of
from antiphon.server.request import Request, ServerContext


def method_handlers(server: ServerContext, client: ClientConnection) -> MethodHandlers:
    """Return what handles the requests and notifications of one client."""
    request, notified = partial(dispatch, server, client), partial(_notified, server, client)
    offered = [row for row in METHODS.values() if row.offered is None or row.offered(server.offer)]
    return MethodHandlers(
        requests={row.name: request for row in offered if row.handler not in (None, extensions.call)},
        notifications={row.name: partial(notified, row) for row in offered if row.notified is not None},
        options=ConnectionOptions(
            on_extension=request,
            on_extension_notified=partial(_extension_notified, server, client),
            lane_of=lane_of,
        ),
    )


async def dispatch(server: ServerContext, client: ClientConnection, params: Any, inbound: Inbound) -> Any:
    """Check a request against its row, and handle it. Nothing is awaited that need not be: a handler begins
    in the order in which it was called."""
    policy, method = client.policy, meant_by(inbound.method, params)
    if policy is EVERYTHING:
        return await _handle(server, client, method, params, inbound)
    client_id = client.client_id
    params = await policy.admit(method, params, size=inbound.size, client_id=client_id)
    try:
        with policy.in_progress(inbound.size):
            return await _handle(server, client, method, params, inbound)
    except Exception as error:
        policy.failed(method, params, error, client_id=client_id)
        raise


async def _handle(
    server: ServerContext, client: ClientConnection, method: Method, params: Any, inbound: Inbound
) -> Any:
    if method.login and not client.authentication.open:
        await client.authentication.check()
    if not method.subagents:
        session_id = session_of(params)
        session = None if session_id is None else server.registry.serving(session_id)
        if session is not None and session.subagent_of is not None:  # SUB-02
            raise InvalidParams("this session works for another one and is only followed")
    assert method.handler is not None
    request = Request(server, client, params, inbound)
    return await (method.handler(request) if method.opens is None else _open(request, method))


async def _open(request: Request, method: Method) -> Any:
    """Handle a request that sets up a session, and note the client's own MCP servers that it declares
    (MCPACP-01)."""
    assert method.handler is not None
    client, params = request.client, request.params
    declared = [
        server for server in params.mcp_servers if isinstance(server, v1.McpServerAcp | v2.McpServerAcp)
    ]
    if not declared:
        return await method.handler(request)
    if not request.server.offer.may_take_mcp_over_acp:
        raise InvalidParams("MCP servers over ACP are not supported")  # MCPCFG-05
    ids = [server.server_id for server in declared]
    if method.opens is Opens.NEW:
        result = await method.handler(request)
        client.mcp.declare(result.session_id, ids)
        return result
    new = [id for id in ids if client.mcp.declared(params.session_id, id) is None]
    client.mcp.declare(params.session_id, new)  # the agent may need them before the answer
    try:
        return await method.handler(request)
    except BaseException:
        client.mcp.retract(params.session_id, new)
        raise


def _notified(server: ServerContext, client: ClientConnection, method: Method, params: Any) -> None:
    if client.policy.admits_notification(method, params, client_id=client.client_id):
        assert method.notified is not None
        method.notified(Request(server, client, params))


def _extension_notified(server: ServerContext, client: ClientConnection, name: str, params: Any) -> None:
    policy = client.policy
    if not policy.admits_notification(method_of(name), params, client_id=client.client_id):
        return

    async def notify() -> None:
        size = len(msgspec.json.encode(params))
        with suppress(AntiphonError), policy.in_progress(size):  # a notification is not answered
            await extensions.notified(Request(server, client, params), name)

    client.wire.start_soon(notify())
