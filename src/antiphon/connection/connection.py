"""Connection: one initialized link between two peers. It drives a Peer over a Transport.

Here are its life and what it sends. `Initialization` opens it, and `Receiver` handles what it receives.
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

from antiphon.connection.calls import Calls, settle
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
from antiphon.connection.intake import Brake, Intake
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
"""Seconds an agent's handlers get to answer once the client has closed its end."""
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
    """An async context manager: the link is served while it is open and closed at its end.

    `requests` and `notifications` map method names to handlers; a method without one is answered with
    `-32601` or ignored. `unbegun` gives the answers to requests that are cancelled before their handler has
    begun, where that is not an error. An agent gives `on_initialize`, a client calls `initialize`. `on_lost`
    is called once the last frame was received, after every call without an answer has failed.
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
            requests,
            notifications,
            unbegun,
            on_extension=options.on_extension,
            on_extension_notified=options.on_extension_notified,
            lane_of=options.lane_of,
        )
        self._transport = transport
        self._on_lost = on_lost
        self._tap = tap
        self._send = tapped_out(transport.send, tap)
        self.send_framed = transport.send_framed
        """Sends what was prepared by `framing`: run for every chunk and client, so without a call between."""
        # For a call or an answer: the gathering of a tick would only keep somebody waiting.
        send_now = tapped_out(transport.send_now, tap)
        self._group = asyncio.TaskGroup()
        self._outside = contextvars.copy_context()
        self._background: set[asyncio.Task[None]] = set()
        self._peer = Peer()
        brake = Brake(transport.pause, transport.resume)
        self._lanes = Lanes(
            bound=options.lane_bound,
            start=self._start,
            pause=lambda: brake.hold(self._lanes),
            resume=lambda: brake.release(self._lanes),
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
        self._intake = Intake(self._receiver.receive, brake)
        self._lost: LinkLost | None = None
        self._closing = False
        self._closed = asyncio.Event()

    @property
    def agreement(self) -> Agreement | None:
        """What `initialize` led to; `None` before."""
        return self._initialization.agreement

    # --- life --------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._outside = contextvars.copy_context()
        self._transport.start(tapped_in(self._intake.receive, self._tap), self._ended)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.aclose()
        finally:
            # The body's own exception is raised as it is, not wrapped in a group of one.
            await self._group.__aexit__(None, None, None)

    async def aclose(self) -> None:
        """End the link. Handlers at work are cancelled, calls without an answer fail."""
        self._closing = True
        self._inbound_requests.dismiss()
        await self._transport.aclose()
        await self._closed.wait()
        self._lanes.stop(still=settle)

    async def wait_closed(self) -> LinkLost:
        """Wait until the link has ended, and say why."""
        await self._closed.wait()
        return self._failure()

    def start_soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something for as long as the link lives, outside of every lane."""

        async def guarded() -> None:
            try:
                await work
            except Exception as error:
                _report_error(error)

        task = self._start(guarded())
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(lambda _: work.close())  # where it was cancelled before its first step

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._group.create_task(work, context=self._context())

    def _context(self) -> contextvars.Context:
        """What stands outside of every lane."""
        return self._outside.copy()

    # --- one link after another --------------------------------------------------------------------

    def cut(self, reason: str) -> None:
        """The link was lost, and the transport is about to have another one: calls fail with `LinkLost` but
        for those that last, and what the peer asked is answered no more. What was received is still handled,
        before anything of the next link."""
        self._intake.finish()
        self._calls.cut(lambda: LinkLost(reason))
        self._inbound_requests.drop()

    def restored(self) -> None:
        """The next link is initialized and in use."""
        self._calls.restored()

    # --- sending -----------------------------------------------------------------------------------

    async def initialize(self, params: Mapping[str, Any]) -> Any:
        """Open the connection as a client. `params` may have both versions' shapes (INIT-01)."""
        raw = await self._calls.call(INITIALIZE, msgspec.json.encode(params), None, first=True)
        # `agreement` was settled when the answer was read: what stood behind it is typed already.
        self._initialization.prepare_soon(updates=UPDATE in self.handlers.notifications)
        return self._initialization.agreed().result(INITIALIZE, raw)

    async def call(self, method: str, params: Any = None) -> Any:
        """Call the peer and return its typed result. Raises `CallFailed`, `InvalidResult`, `LinkLost`.

        A caller that is cancelled tells the peer so with `$/cancel_request`.
        """
        codec = self._initialization.agreed()
        encoded = b"{}" if params is None else codec.encode(params)
        return codec.result(method, await self._calls.call(method, encoded, session_of(params)))

    def begin(
        self,
        method: str,
        params: Any,
        settled: Callable[[Any], None],
        *,
        lasting: bool = False,
        first: bool = False,
    ) -> Call:
        """Call the peer without waiting. `settled` gets the typed result, or the exception, in the session's
        lane where the answer has its place: before anything that was received after it is handled. Where the
        transport outlives a link, a `lasting` call is made again on the next one, and one to be made `first`
        is made while that is not in use yet."""
        codec = self._initialization.agreed()

        def typed(outcome: Raw | AntiphonError) -> None:
            if not isinstance(outcome, AntiphonError):
                try:
                    outcome = codec.result(method, outcome)
                except AntiphonError as error:
                    outcome = error
            settled(outcome)

        return self._calls.begin(
            method, codec.encode(params), session_of(params), typed, lasting=lasting, first=first
        )

    def abandon(self, call: Call) -> None:
        """Give up on a call that was begun; the peer is told (`$/cancel_request`)."""
        self._calls.abandon(call)

    def behind(self, session_id: str | None, act: Callable[[], None]) -> None:
        """Do something once all that was received so far for a session, or for none, has been handled."""
        if self._lanes.idle(session_id):
            act()
        else:
            self._lanes.get(session_id).put(0, settle, ((lambda _: act(), _NOTHING),))

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification; waits while the link is congested."""
        self._calls.check()
        encode = (self._initialization.codec or self._initialization.agreed()).encode
        self._send(encode_notification(method, b"{}" if params is None else encode(params)))
        if self._transport.congested:
            await self._transport.drain()

    def answer(self, inbound: Inbound, result: Any) -> None:
        """Answer a request from outside its handler, where the answer has its place in a stream of updates.

        `result` is typed, or an `ErrorObject`. The handler's own result is then not sent any more.
        """
        if self._lost is not None:
            return
        if isinstance(result, ErrorObject):
            self._inbound_requests.fail(inbound, result)
        else:
            self._inbound_requests.answer(inbound, self._initialization.agreed().encode(result))

    def send(self, frame: bytes) -> None:
        """Send one frame that is JSON already. `drain` is for whoever sends many."""
        if self._lost is None:
            self._send(frame)

    @property
    def framing(self) -> Framing | None:
        """How frames can be prepared for this link together with others; `None` where they cannot be."""
        return None if self._tap is not None else self._transport.framing

    @property
    def congested(self) -> bool:
        """Whether more is on its way than the link can take just now."""
        return self._transport.congested

    async def drain(self) -> None:
        """Wait until the link can take more, or has ended."""
        if self._transport.congested:
            await self._transport.drain()

    # --- the end -----------------------------------------------------------------------------------

    def _ended(self) -> None:
        """The transport has handed over its last frame."""
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
        """A client that has closed its end may still read ours: what can be answered soon is answered."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_ANSWERS):
                while tasks := [*self._inbound_requests.tasks, *self._lanes.workers()]:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


def _report_error(error: BaseException) -> None:
    logger.error("a handler failed", exc_info=error)
