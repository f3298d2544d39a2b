"""Connection: one initialized link between two peers. It drives a Peer over a Transport.

The ordering rule is kept here. Everything that belongs to a session goes through that session's lane, in
receive order: its updates, the requests and notifications that name it, and the answers that close a span
of it (prompt, load, resume, …). A request's handler begins in the lane and runs there up to its first
`await`; the waiting happens outside. So a cancel cannot overtake its prompt, and when a prompt's answer
wakes its caller, every update sent before it has been handled (RPC-37, PROMPT-V1-04).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

import msgspec
from msgspec import Raw

from antiphon.connection.calls import Calls, session_named, settle
from antiphon.connection.lanes import LANE_BOUND, Lanes
from antiphon.connection.serving import Job, Serving
from antiphon.errors import (
    AntiphonError,
    ErrorObject,
    InvalidRequest,
    LinkLost,
    LocalError,
    MethodNotFound,
    RemoteError,
    to_wire_error,
)
from antiphon.jsonrpc import frames
from antiphon.jsonrpc.lines import Received
from antiphon.jsonrpc.peer import Answered, BatchPolicy, Call, CancelAsked, Inbound, Peer
from antiphon.schema import opening
from antiphon.schema.codec import Codec, codec
from antiphon.schema.methods import Kind
from antiphon.schema.updates import UPDATE, UpdateReader, is_update
from antiphon.schema.version import V2, VERSIONS, Agreement, Offer, read_answer, read_offer
from antiphon.transports.base import Transport

logger = logging.getLogger("antiphon.connection")

INITIALIZE = "initialize"
MANY = 8
"""From so many frames on, it pays to look for a run of updates."""
_NOTHING = Raw(b"null")
LAST_ANSWERS = 0.5
"""Seconds an agent's handlers get to answer once the client has closed its end."""


class Role(StrEnum):
    """Which of the two roles this side has."""

    AGENT = "agent"
    CLIENT = "client"


RequestHandler = Callable[[Any, Inbound], Awaitable[Any]]
NotificationHandler = Callable[[Any], Awaitable[None] | None]
InitializeHandler = Callable[[Offer, Any], Awaitable[tuple[Agreement, Any]]]
Tap = Callable[[str, Received], None]
"""A read-only copy of the frames: called with `"in"` or `"out"` and the frame."""


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
        unbegun: Mapping[str, Callable[[Any], Any]] | None = None,
        on_initialize: InitializeHandler | None = None,
        supported: Sequence[int] = VERSIONS,
        batch: BatchPolicy = BatchPolicy.REJECT,
        lane_bound: int = LANE_BOUND,
        on_lost: Callable[[LinkLost], None] | None = None,
        tap: Tap | None = None,
    ) -> None:
        self.role = role
        self.agreement: Agreement | None = None
        self._transport = transport
        self._requests = dict(requests or {})
        self._notifications = dict(notifications or {})
        self._unbegun = dict(unbegun or {})
        self._on_initialize = on_initialize
        self._supported = tuple(supported)
        self._opening = opening.Opening()
        self._codec: Codec | None = None
        self._updates: UpdateReader | None = None
        self._on_lost = on_lost
        self._tap = tap
        self._send = self._tapped(transport.send)
        # For a call or an answer: the gathering of a tick would only keep somebody waiting.
        self._send_now = self._tapped(transport.send_now)
        self._group = asyncio.TaskGroup()
        self._outside = contextvars.copy_context()
        self._background: set[asyncio.Task[None]] = set()
        self._peer = Peer(batch=batch)
        self._lanes = Lanes(
            bound=lane_bound,
            start=self._start,
            pause=transport.pause,
            resume=transport.resume,
            report=_report_error,
        )
        self._calls = Calls(self._peer, self._lanes, self._send_now)
        self._serving = Serving(self._peer, self._lanes, send=self._send_now, context=self._context)
        self._lost: LinkLost | None = None
        self._closing = False
        self._closed = asyncio.Event()

    # --- life --------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._outside = contextvars.copy_context()
        self._transport.start(self._received, self._ended)
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
        self._serving.dismiss()
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

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._group.create_task(work, context=self._context())

    def _context(self) -> contextvars.Context:
        """What stands outside of every lane."""
        return self._outside.copy()

    # --- sending -----------------------------------------------------------------------------------

    async def initialize(self, params: Mapping[str, Any]) -> Any:
        """Open the connection as a client. `params` may have both versions' shapes (INIT-01)."""
        raw = await self._calls.call(INITIALIZE, msgspec.json.encode(params), None)
        # `agreement` was settled when the answer was read: what stood behind it is typed already.
        self._prepare_soon()
        return self._agreed().result(INITIALIZE, raw)

    async def call(self, method: str, params: Any = None) -> Any:
        """Call the peer and return its typed result. Raises `CallFailed`, `InvalidResult`, `LinkLost`.

        A caller that is cancelled tells the peer so with `$/cancel_request`.
        """
        codec = self._agreed()
        encoded = b"{}" if params is None else codec.encode(params)
        return codec.result(method, await self._calls.call(method, encoded, session_of(params)))

    def begin(self, method: str, params: Any, settled: Callable[[Any], None]) -> Call:
        """Call the peer without waiting. `settled` gets the typed result, or the exception, in the session's
        lane where the answer has its place: before anything that was received after it is handled."""
        codec = self._agreed()

        def typed(outcome: Raw | AntiphonError) -> None:
            if not isinstance(outcome, AntiphonError):
                try:
                    outcome = codec.result(method, outcome)
                except AntiphonError as error:
                    outcome = error
            settled(outcome)

        return self._calls.begin(method, codec.encode(params), session_of(params), typed)

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
        if self._lost is not None:
            raise self._failure()
        encode = (self._codec or self._agreed()).encode
        self._send(frames.encode_notification(method, b"{}" if params is None else encode(params)))
        if self._transport.congested:
            await self._transport.drain()

    def answer(self, inbound: Inbound, result: Any) -> None:
        """Answer a request from outside its handler, where the answer has its place in a stream of updates.

        `result` is typed, or an `ErrorObject`. The handler's own result is then not sent any more.
        """
        if self._lost is not None:
            return
        if isinstance(result, ErrorObject):
            self._serving.fail(inbound, result)
        else:
            self._serving.answer(inbound, self._agreed().encode(result))

    def send(self, frame: bytes) -> None:
        """Send one frame that is JSON already. `drain` is for whoever sends many."""
        if self._lost is None:
            self._send(frame)

    @property
    def congested(self) -> bool:
        """Whether more is on its way than the link can take just now."""
        return self._transport.congested

    async def drain(self) -> None:
        """Wait until the link can take more, or has ended."""
        if self._transport.congested:
            await self._transport.drain()

    def _agreed(self) -> Codec:
        if self._codec is None:
            raise LocalError("nothing can be sent before `initialize` has succeeded")
        return self._codec

    def _tapped(self, send: Callable[[bytes], None]) -> Callable[[bytes], None]:
        tap = self._tap
        if tap is None:
            return send

        def tapped(frame: bytes) -> None:
            tap("out", frame)
            send(frame)

        return tapped

    # --- receiving ---------------------------------------------------------------------------------

    def _ended(self) -> None:
        """The transport has handed over its last frame."""
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
            await self._serving.abort()
            self._closed.set()

    def _failure(self) -> LinkLost:
        assert self._lost is not None
        return LinkLost(self._lost.reason, stderr=self._lost.stderr)

    async def _finish_serving(self) -> None:
        """A client that has closed its end may still read ours: what can be answered soon is answered."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_ANSWERS):
                while tasks := [*self._serving.tasks, *self._lanes.workers()]:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    def _received(self, received: list[Received]) -> None:
        if self._tap is not None:
            for frame in received:
                self._tap("in", frame)
        many = len(received)
        if self._updates is not None and many >= MANY:
            # A stream of updates, perhaps with an answer at its end: what is one run is read in one go.
            while many and not is_update(received[many - 1]):
                many -= 1
            updates = self._updates.read_all(received[:many]) if many >= MANY else None
            if updates is not None:
                self._updated(updates, received)
                received = received[many:]
        for frame in received:
            if self._updates is not None and isinstance(frame, bytes):
                update = self._updates.read(frame)
                if update is not None:
                    self._updated([update], (frame,))
                    continue
            try:
                self._receive(frame)
            except Exception:
                # A mistake of ours costs one frame, not the link.
                logger.exception("a frame could not be handled")

    def _updated(self, updates: list[Any], lines: Sequence[Any]) -> None:
        """Put each run of updates of one session into its lane."""
        handler = self._notifications[UPDATE]
        first, session = 0, updates[0].session_id
        for at, update in enumerate(updates):
            if update.session_id != session:
                size = sum(map(len, lines[first:at]))
                self._lanes.get(session).put(size, handler, updates[first:at])
                first, session = at, update.session_id
        size = sum(map(len, lines[first : len(updates)]))
        self._lanes.get(session).put(size, handler, updates[first:] if first else updates)

    def _receive(self, frame: Received) -> None:
        size = len(frame) if isinstance(frame, bytes) else 0
        for event in self._peer.receive(frame):
            if isinstance(event, Inbound):
                self._called(event, size)
            elif isinstance(event, Answered):
                self._answered(event, size)
            elif isinstance(event, frames.Notification):
                self._notified(event, size)
            elif isinstance(event, CancelAsked):
                # In the lane of its request, so that it finds the request begun or not begun.
                lane = self._lanes.get(session_named(event.inbound.params))
                lane.put(0, self._serving.cancel, (event.inbound,))
            else:
                level = logging.DEBUG if event.expected else logging.WARNING
                logger.log(level, "%s", event.reason)
                if event.excerpt:  # OBS-06: it may be what somebody said
                    logger.debug("it began with %r", event.excerpt)
                if event.reply is not None:
                    self._send(event.reply)

    def _answered(self, event: Answered, size: int) -> None:
        unfit: AntiphonError | None = None
        if event.call.method == INITIALIZE and event.result is not None:
            # Settled while reading: the frames behind this answer are already in its version.
            try:
                self._agree(read_answer(_json(event.result), supported=self._supported))
            except RemoteError as error:
                unfit = error
        self._calls.answered(event, size, unfit=unfit)

    def _notified(self, notification: frames.Notification, size: int) -> None:
        if self.role is Role.AGENT:
            verdict = self._opening.step(opening.Input.NOTIFICATION)
            if verdict is not opening.Verdict.SERVE:
                return  # INIT-25
        handler = self._notifications.get(notification.method)
        if handler is None or self._codec is None:
            return  # RPC-19
        try:
            params = self._codec.params(Kind.NOTIFICATION, notification.method, notification.params)
        except AntiphonError as error:
            logger.warning("a %s was dropped: %s", notification.method, error)
            return
        self._lanes.get(session_of(params)).put(size, handler, (params,))

    def _called(self, inbound: Inbound, size: int) -> None:
        try:
            if self.role is Role.AGENT and inbound.method == INITIALIZE:
                self._admit(opening.Input.INITIALIZE, "this connection is already initialized")
                job = Job(inbound, None, self._open, None, bytes)
            else:
                if self.role is Role.AGENT and self._opening.state is not opening.State.IN_USE:
                    self._admit(opening.Input.REQUEST, "the connection is not initialized")
                job = self._job(inbound)
        except AntiphonError as error:
            self._serving.fail(inbound, to_wire_error(error))
        else:
            self._serving.serve(job, size)

    def _admit(self, input: opening.Input, otherwise: str) -> None:
        if self._opening.step(input) is not opening.Verdict.SERVE:
            raise InvalidRequest(otherwise)

    def _job(self, inbound: Inbound) -> Job:
        handler, codec = self._requests.get(inbound.method), self._codec
        if codec is None:
            raise InvalidRequest("the connection is not initialized")
        if handler is None:
            raise MethodNotFound(inbound.method)
        params = codec.params(Kind.REQUEST, inbound.method, inbound.params)
        unbegun = self._unbegun.get(inbound.method)
        return Job(inbound, session_of(params), handler, params, codec.encode, unbegun)

    # --- opening -----------------------------------------------------------------------------------

    async def _open(self, _: None, inbound: Inbound) -> bytes:
        """Answer an `initialize`, and speak as agreed from there on."""
        try:
            if self._on_initialize is None:
                raise LocalError("an agent's connection needs `on_initialize`")
            selected = self.agreement.version if self.agreement else None
            offer = read_offer(_json(inbound.params), supported=self._supported, selected=selected)
            chosen = codec(offer.version)
            params = chosen.opening_params(offer.params, exact=offer.exact)
            agreement, result = await self._on_initialize(offer, params)
            answer = chosen.encode(result)
        except BaseException:
            self._opening.step(opening.Input.FAILED)
            raise
        self._opening.step(opening.Input.SUCCEEDED)
        self._agree(agreement)
        self._prepare_soon()
        return answer

    def _agree(self, agreement: Agreement) -> None:
        self.agreement = agreement
        self._codec = codec(agreement.version)
        self._peer.strict_ids = agreement.version >= V2  # RPC-03

    def _prepare_soon(self) -> None:
        """Load the many types of an update once nobody waits for the answer to `initialize` any more."""

        def prepare(codec: Codec) -> None:
            updates = codec.updates
            if self.role is Role.CLIENT and UPDATE in self._notifications:
                self._updates = updates

        asyncio.get_running_loop().call_soon(prepare, self._agreed())


def session_of(params: Any) -> str | None:
    """The session that params belong to, typed or plain."""
    session = params.get("sessionId") if isinstance(params, dict) else getattr(params, "session_id", None)
    return session if isinstance(session, str) else None


def _json(raw: Raw | None) -> Any:
    return {} if raw is None else msgspec.json.decode(raw)


def _report_error(error: BaseException) -> None:
    logger.error("a handler failed", exc_info=error)
