"""An MCP server in a child process (stdio), behind the handler of an `AcpServer`.

Any program that speaks MCP over its stdin and stdout will do. Messages of a program with the revision of MCP
over ACP pass through. An older program gets its handshake, and its results get the field that it lacks.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from antiphon.client.mcp.servers import McpRequest
from antiphon.errors import AntiphonError, McpError, MethodNotFound
from antiphon.jsonrpc import frames
from antiphon.jsonrpc.lines import Received
from antiphon.jsonrpc.peer import Answered, Call, Inbound, Peer
from antiphon.schema.mcp_over_acp import CAPABILITIES_KEY, INFO_KEY, REVISION, REVISION_KEY
from antiphon.transports.base import Transport

logger = logging.getLogger("antiphon.client")

DISCOVER, INITIALIZE = "server/discover", "initialize"
HANDSHAKE = "2025-11-25"
"""The newest revision that begins with a handshake."""
INFO = {"name": "antiphon", "version": "0"}
_INNER = (REVISION_KEY, CAPABILITIES_KEY, INFO_KEY)
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class McpChild:
    """The handler for an `AcpServer`; `mcp_child` starts one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._peer = Peer()
        self._answers: dict[Call, asyncio.Future[Any]] = {}
        self._active: dict[int, McpRequest] = {}
        self._notifying: set[asyncio.Task[None]] = set()
        self._ended: str | None = None
        self._discovered: dict[str, Any] | None = None
        """The handshake of an older server, in the form of newer ones; None for a newer one."""

    async def open(self) -> None:
        self._transport.start(self._received, self._end)
        try:
            await self._call(
                DISCOVER, {"_meta": {REVISION_KEY: REVISION, CAPABILITIES_KEY: {}, INFO_KEY: INFO}}
            )
        except McpError:
            answer = await self._call(
                INITIALIZE, {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": INFO}
            )
            self._send(frames.encode_notification("notifications/initialized", b"{}"))
            self._discovered = {
                "resultType": "complete",
                "supportedVersions": [REVISION],
                "capabilities": answer.get("capabilities", {}),
                "_meta": {"io.modelcontextprotocol/serverInfo": answer.get("serverInfo", {})},
                **({"instructions": answer["instructions"]} if "instructions" in answer else {}),
            }

    async def __call__(self, request: McpRequest) -> Any:
        """Pass a request on. Notifications of the server go to the agent; a cancel goes to the server."""
        params = request.params
        if self._discovered is None:
            return await self._call(request.method, params, request)
        if request.method == DISCOVER:
            return self._discovered
        meta = {key: value for key, value in params.get("_meta", {}).items() if key not in _INNER}
        rest = {key: value for key, value in params.items() if key != "_meta"}
        result = await self._call(request.method, {**rest, "_meta": meta} if meta else rest, request)
        return {"resultType": "complete", **result} if isinstance(result, dict) else result

    async def _call(self, method: str, params: dict[str, Any], request: McpRequest | None = None) -> Any:
        if self._ended is not None:
            raise McpChildGone(self._ended)
        call, frame = self._peer.call(method, msgspec.json.encode(params))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[call] = answer
        if request is not None:
            self._active[call.id] = request
        self._send(frame)
        try:
            result = await answer
            if self._notifying:
                await asyncio.wait(self._notifying)  # its earlier notifications go before the answer
            return result
        except asyncio.CancelledError:
            if self._peer.abandon(call) is not None:  # MCP has its own notification for it
                gone = msgspec.json.encode({"requestId": call.id})
                self._send(frames.encode_notification("notifications/cancelled", gone))
            raise
        finally:
            self._answers.pop(call, None)
            self._active.pop(call.id, None)

    def _send(self, frame: bytes) -> None:
        if self._ended is None:
            self._transport.send(frame)

    # --- received frames --------------------------------------------------------------------------------

    def _received(self, received: list[Received]) -> None:
        for frame in received:
            for event in self._peer.receive(frame):
                if isinstance(event, Answered):
                    self._answered(event)
                elif isinstance(event, frames.Notification):
                    self._notify(event)
                elif isinstance(event, Inbound):
                    # MCPACP-06: a server cannot send requests to the agent.
                    self._send(self._peer.fail(event, MethodNotFound(event.method).to_wire()))

    def _answered(self, event: Answered) -> None:
        answer = self._answers.pop(event.call, None)
        if answer is None or answer.done():
            return
        if event.error is not None:
            error = event.error
            answer.set_exception(McpError(error.code, error.message, data=error.data))
        else:
            try:
                answer.set_result(msgspec.json.decode(event.result or b"null"))
            except msgspec.MsgspecError as unreadable:  # such as a number that is out of range
                answer.set_exception(McpError(-32603, f"the result cannot be read: {unreadable}"))

    def _notify(self, event: frames.Notification) -> None:
        try:
            params = msgspec.json.decode(event.params) if event.params is not None else {}
        except msgspec.MsgspecError as unreadable:
            logger.warning("MCP notification dropped: %r: %s", event.method, unreadable)
            return
        request = self._request_for(params) if isinstance(params, dict) else None
        if request is not None:
            task = asyncio.get_running_loop().create_task(request.notify(event.method, params))
            self._notifying.add(task)
            task.add_done_callback(self._notified)

    def _notified(self, task: asyncio.Task[None]) -> None:
        self._notifying.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.debug("MCP notification lost: %s", task.exception())

    def _request_for(self, params: dict[str, Any]) -> McpRequest | None:
        """The request that a notification belongs to: by its progress token, by its subscription, or because
        there is no other."""
        token = params.get("progressToken")
        if token is not None:
            for request in self._active.values():
                meta = request.params.get("_meta")
                if isinstance(meta, dict) and meta.get("progressToken") == token:
                    return request
            return None
        meta = params.get("_meta")
        subscription = meta.get(_SUBSCRIPTION) if isinstance(meta, dict) else None
        if subscription is not None:
            return next((r for id, r in self._active.items() if str(id) == str(subscription)), None)
        return next(iter(self._active.values())) if len(self._active) == 1 else None

    def _end(self) -> None:
        self._ended = self._transport.end_reason or "the MCP server has ended"
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(McpChildGone(self._ended))
        self._answers.clear()

    async def aclose(self) -> None:
        await self._transport.aclose()
        for task in tuple(self._notifying):
            task.cancel()


class McpChildGone(AntiphonError):
    """The MCP server ended before it answered."""


@asynccontextmanager
async def mcp_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    on_stderr: Callable[[str], None] | None = None,
) -> AsyncIterator[McpChild]:
    """Run an MCP server inside the block: `AcpServer("files", child)` offers it to an agent."""
    from antiphon.transports.processes.child import ChildTransport  # few clients need it

    transport = await ChildTransport.spawn(list(command), env=env, cwd=cwd, on_stderr=on_stderr)
    child = McpChild(transport)
    try:
        await child.open()
        yield child
    finally:
        await child.aclose()
