"""Connection: one initialized link between two peers. It drives a Peer over a Transport.

This module has its lifecycle and the sending. `Initialization` opens it; `Receiver` handles received frames.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Self

import msgspec
from msgspec import Raw, Struct

from antiphon.connection.calls import Calls, deliver_outcome
from antiphon.connection.handlers import (
    ExtensionNotified,
    Handlers,
    LaneOf,
    NotificationHandler,
    RequestHandler,
    Unbegun,
    session_of_call,
)
from antiphon.connection.inbound_requests import InboundRequests
from antiphon.connection.initialization import INITIALIZE, Initialization, InitializeHandler, Role
from antiphon.connection.intake import Intake, ReadingPause
from antiphon.connection.lanes import LANE_BOUND, Lanes
from antiphon.connection.receiver import Receiver
from antiphon.connection.sessions import session_of
from antiphon.connection.tap import Tap, tapped_in, tapped_out
from antiphon.errors import AntiphonError, ErrorObject, LinkLost
from antiphon.jsonrpc.frames import encode_notification
from antiphon.jsonrpc.peer import Call, Inbound, Peer
from antiphon.schema.updates import UPDATE
from antiphon.schema.version import VERSIONS, Agreement
from antiphon.transports.base import Framing, Transport

logger = logging.getLogger("antiphon.connection")

LAST_ANSWERS = 0.5
"""Seconds that an agent's handlers get to respond after the client has closed its end."""
_NOTHING = Raw(b"null")


class ConnectionOptions(Struct, frozen=True, kw_only=True):
    """Further options of a connection."""

    supported: Sequence[int] = VERSIONS
    """The ACP versions to accept."""
    lane_bound: int = LANE_BOUND
    """Bytes that may wait in the lane of a session before the transport is paused."""
    tap: Tap | None = None
    """Receives a copy of all frames."""
    on_extension: RequestHandler | None = None
    """Answers requests of methods that begin with `_` and have no handler (EXT-01)."""
    on_extension_notified: ExtensionNotified | None = None
    """The same for notifications (EXT-02)."""
    lane_of: LaneOf = session_of_call
    """Returns the session in whose lane a method runs: by default the one that its params name."""


class Connection:
    """An async context manager that serves a link inside its block and closes it at the end.

    `requests` and `notifications` map method names to handlers. A request without a handler gets `-32601`; a
    notification without one is ignored. `unbegun` makes the responses to requests that are cancelled before
    their handler has begun, if that is not an error. An agent sets `on_initialize`, a client calls
    `initialize`. `on_lost` is called after the last frame, when all calls without a response have failed.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        role: Role,
        requests: Mapping[str, RequestHandler] | None = None,
        notifications: Mapping[str, NotificationHandler] | None = None,
        unbegun: Mapping[str, Unbegun] | None = None,
        on_initialize: InitializeHandler | None = None,
        on_lost: Callable[[LinkLost], None] | None = None,
        options: ConnectionOptions = ConnectionOptions(),
    ) -> None:
        tap = options.tap
        self.role = role
        self.handlers = Handlers(
            dict(requests or {}),
            dict(notifications or {}),
            dict(unbegun or {}),
            options.on_extension,
            options.on_extension_notified,
            options.lane_of,
        )
        self._transport = transport
        self._on_lost = on_lost
        self._tap = tap
        self._send = tapped_out(transport.send, tap)
        self.send_framed = transport.send_framed
        """Sends bytes that `framing` made. Runs for every chunk and client, so no method wraps it."""
        # For calls and responses: to wait for the end of the tick would only delay the peer.
        send_now = tapped_out(transport.send_now, tap)
        self._group = asyncio.TaskGroup()
        self._outside = contextvars.copy_context()
        self._background: set[asyncio.Task[None]] = set()
        self._peer = Peer()
        reading = ReadingPause(transport.pause, transport.resume)
        self._lanes = Lanes(
            bound=options.lane_bound,
            start=self._start,
            pause=lambda: reading.hold(self._lanes),
            resume=lambda: reading.release(self._lanes),
            report=_report_error,
            context=self._context,
        )
        self._calls = Calls(self._peer, self._lanes, send_now)
        self._inbound_requests = InboundRequests(
            self._peer, self._lanes, send=send_now, context=self._context
        )
        self._initialization = Initialization(
            self._peer, supported=options.supported, on_initialize=on_initialize
        )
        self._receiver = Receiver(
            self._peer,
            role,
            initialization=self._initialization,
            handlers=self.handlers,
            lanes=self._lanes,
            calls=self._calls,
            inbound_requests=self._inbound_requests,
            send=self._send,
        )
        self._intake = Intake(self._receiver.receive, reading)
        self._lost: LinkLost | None = None
        self._closing = False
        self._closed = asyncio.Event()

    @property
    def agreement(self) -> Agreement | None:
        """The result of `initialize`; `None` before."""
        return self._initialization.agreement

    # --- lifecycle ---------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._outside = contextvars.copy_context()
        self._transport.start(tapped_in(self._intake.receive, self._tap), self._ended)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.aclose()
        finally:
            # An exception of the body is not wrapped in an `ExceptionGroup`.
            await self._group.__aexit__(None, None, None)

    async def aclose(self) -> None:
        """End the link. Running handlers are cancelled, and calls without a response fail."""
        self._closing = True
        self._inbound_requests.dismiss()
        await self._transport.aclose()
        await self._closed.wait()
        self._lanes.stop(still=deliver_outcome)

    async def wait_closed(self) -> LinkLost:
        """Wait until the link has ended, and return the reason."""
        await self._closed.wait()
        return self._failure()

    def start_soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine outside every lane. It is cancelled when the link ends."""

        async def guarded() -> None:
            try:
                await work
            except Exception as error:
                _report_error(error)

        task = self._start(guarded())
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(lambda _: work.close())  # it may be cancelled before its first step

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._group.create_task(work, context=self._context())

    def _context(self) -> contextvars.Context:
        """Return a context outside every lane."""
        return self._outside.copy()

    # --- replacing the link ------------------------------------------------------------------------

    def cut(self, reason: str) -> None:
        """Note that the link was lost and that the transport will use another one. Calls fail with `LinkLost`
        unless they are `lasting`, and the peer's requests get no response. Received frames are still handled,
        before any frame of the next link."""
        self._intake.finish()
        self._calls.cut(lambda: LinkLost(reason))
        self._inbound_requests.drop()

    def restored(self) -> None:
        """Note that the next link is initialized. Lasting calls are sent again."""
        self._calls.restored()

    # --- sending -----------------------------------------------------------------------------------

    async def initialize(self, params: Mapping[str, Any]) -> Any:
        """Open the connection as a client. `params` may have both versions' shapes (INIT-01)."""
        raw = await self._calls.call(INITIALIZE, msgspec.json.encode(params), None, first=True)
        # `agreement` was set when the response was read: the frames after it are decoded with it.
        self._initialization.prepare_soon(updates=UPDATE in self.handlers.notifications)
        return self._initialization.agreed().result(INITIALIZE, raw)

    async def call(self, method: str, params: Any = None) -> Any:
        """Call the peer and return its typed result. Raises `CallFailed`, `InvalidResult`, `LinkLost`.

        If the caller is cancelled, the peer gets `$/cancel_request`.
        """
        codec = self._initialization.agreed()
        encoded = b"{}" if params is None else codec.encode(params)
        return codec.result(method, await self._calls.call(method, encoded, session_of(params)))

    def begin(
        self,
        method: str,
        params: Any,
        on_outcome: Callable[[Any], None],
        *,
        lasting: bool = False,
        first: bool = False,
    ) -> Call:
        """Call the peer without waiting for the response.

        `on_outcome` gets the typed result or the exception, in the session's lane: before any frame that was
        received later is handled.
        `lasting`: the call is sent again on the next link.
        `first`: the call may be sent before the next link is in use.
        """
        codec = self._initialization.agreed()

        def typed(outcome: Raw | AntiphonError) -> None:
            if not isinstance(outcome, AntiphonError):
                try:
                    outcome = codec.result(method, outcome)
                except AntiphonError as error:
                    outcome = error
            on_outcome(outcome)

        return self._calls.begin(
            method, codec.encode(params), session_of(params), typed, lasting=lasting, first=first
        )

    def abandon(self, call: Call) -> None:
        """Stop waiting for a call that `begin` made, and send `$/cancel_request`."""
        self._calls.abandon(call)

    def after_received(self, session_id: str | None, act: Callable[[], None]) -> None:
        """Call `act` once all frames received so far for a session, or for none, have been handled."""
        if self._lanes.idle(session_id):
            act()
        else:
            self._lanes.get(session_id).put(0, deliver_outcome, ((lambda _: act(), _NOTHING),))

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification. Waits while the link is congested."""
        self._calls.check()
        encode = (self._initialization.codec or self._initialization.agreed()).encode
        self._send(encode_notification(method, b"{}" if params is None else encode(params)))
        if self._transport.congested:
            await self._transport.drain()

    def answer(self, inbound: Inbound, result: Any) -> None:
        """Respond to a request from outside its handler, at a certain place in a stream of updates.

        `result` is typed, or an `ErrorObject`. The result of the handler is then not sent.
        """
        if self._lost is not None:
            return
        if isinstance(result, ErrorObject):
            self._inbound_requests.fail(inbound, result)
        else:
            self._inbound_requests.answer(inbound, self._initialization.agreed().encode(result))

    def send(self, frame: bytes) -> None:
        """Send one frame of encoded JSON. A sender of many frames calls `drain` in between."""
        if self._lost is None:
            self._send(frame)

    @property
    def framing(self) -> Framing | None:
        """Encodes frames for `send_framed`, if several links can share the bytes; else `None`."""
        return None if self._tap is not None else self._transport.framing

    @property
    def congested(self) -> bool:
        """Whether a sender should `drain` before it sends more."""
        return self._transport.congested

    async def drain(self) -> None:
        """Wait until the link accepts more, or has ended."""
        if self._transport.congested:
            await self._transport.drain()

    # --- the end -----------------------------------------------------------------------------------

    def _ended(self) -> None:
        """Handle the end of the transport, after its last frame."""
        self._intake.drop()
        self._receiver.faults.sum_up()
        self._lost = LinkLost(self._transport.end_reason or "the link ended", stderr=self._transport.stderr)
        self._peer.close()
        self._calls.lose(self._failure)
        if self._on_lost is not None:
            try:
                self._on_lost(self._failure())
            except Exception as error:
                _report_error(error)
        self._start(self._end())

    async def _end(self) -> None:
        try:
            if self.role is Role.AGENT and not self._closing:
                await self._finish_serving()
        finally:
            for task in self._background:
                task.cancel()
            await self._inbound_requests.abort()
            self._closed.set()

    def _failure(self) -> LinkLost:
        assert self._lost is not None
        return LinkLost(self._lost.reason, stderr=self._lost.stderr)

    async def _finish_serving(self) -> None:
        """Let handlers respond for a short time: a client that has closed its end may still read."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_ANSWERS):
                while tasks := [*self._inbound_requests.tasks, *self._lanes.workers()]:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


def _report_error(error: BaseException) -> None:
    logger.error("handler failed", exc_info=error)
