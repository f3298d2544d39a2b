"""Connection: one initialized link between two peers. It drives a Peer over a Transport.

The ordering rule is kept here. Everything that belongs to a session goes through that session's lane, in
receive order: its updates, the requests and notifications that name it, and the responses that close a
span of it (prompt, load, resume, …). A request's handler starts in the lane and runs there up to its first
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
from msgspec import Raw, Struct

from antiphon.connection.lanes import LANE_BOUND, Lane, Lanes, inside
from antiphon.errors import (
    AntiphonError,
    CallFailed,
    ErrorObject,
    InvalidParams,
    InvalidRequest,
    LaneMisuse,
    LinkLost,
    LocalError,
    MethodNotFound,
    RemoteError,
    RequestCancelled,
    to_wire_error,
)
from antiphon.jsonrpc import frames
from antiphon.jsonrpc.lines import Received
from antiphon.jsonrpc.peer import (
    Answered,
    BatchPolicy,
    Call,
    Called,
    CancelAsked,
    Fault,
    Inbound,
    Notified,
    Peer,
)
from antiphon.schema import opening
from antiphon.schema.codec import Codec, codec
from antiphon.schema.methods import Kind
from antiphon.schema.version import V2, VERSIONS, Agreement, Offer, read_answer, read_offer
from antiphon.transports.base import Transport

logger = logging.getLogger("antiphon.connection")

INITIALIZE = "initialize"
UPDATE = "session/update"
IN_LANE = frozenset({"session/prompt", "session/load", "session/resume", "session/close"})
"""Calls whose responses are delivered in the lane of the session they name."""
OPENS_LANE = frozenset({"session/new", "session/fork"})
"""Calls whose responses are delivered in the lane of the session their result names."""


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


class _SessionNamed(Struct, rename="camel"):
    session_id: str


class Connection:
    """An async context manager: the link is served while it is open and closed at its end.

    `requests` and `notifications` map method names to handlers; a method without one is answered with
    `-32601` or ignored. An agent gives `on_initialize`, a client calls `initialize`.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        role: Role,
        requests: Mapping[str, RequestHandler] | None = None,
        notifications: Mapping[str, NotificationHandler] | None = None,
        on_initialize: InitializeHandler | None = None,
        supported: Sequence[int] = VERSIONS,
        batch: BatchPolicy = BatchPolicy.REJECT,
        lane_bound: int = LANE_BOUND,
        tap: Tap | None = None,
    ) -> None:
        self.role = role
        self.agreement: Agreement | None = None
        self._transport = transport
        self._requests = dict(requests or {})
        self._notifications = dict(notifications or {})
        self._on_initialize = on_initialize
        self._supported = tuple(supported)
        self._peer = Peer(batch=batch)
        self._opening = opening.Opening()
        self._codec: Codec | None = None
        self._update_line: Callable[[bytes], frames.Notification | None] | None = None
        self._on_update: NotificationHandler = _ignore
        self._tap = tap
        self._group = asyncio.TaskGroup()
        self._outside = contextvars.copy_context()
        self._lanes = Lanes(bound=lane_bound, start=self._start, report=self._report_error)
        self._answers: dict[Call, tuple[asyncio.Future[Raw], str | None]] = {}
        self._serving: dict[Inbound, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._lost: LinkLost | None = None
        self._closing = False
        self._closed = asyncio.Event()

    # --- life --------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._outside = contextvars.copy_context()
        self._start(self._read(), None)
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
        await self._transport.aclose()
        await self._closed.wait()
        self._lanes.stop()

    async def wait_closed(self) -> LinkLost:
        """Wait until the link has ended, and say why."""
        await self._closed.wait()
        assert self._lost is not None
        return self._lost

    def _start(
        self, work: Coroutine[Any, Any, None], context: contextvars.Context | None
    ) -> asyncio.Task[None]:
        return self._group.create_task(work, context=context or self._outside.copy())

    def start_soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something for as long as the connection lives, outside of every lane."""
        task = self._start(self._guarded(work), None)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self._report_error(error)

    # --- calling -----------------------------------------------------------------------------------

    async def initialize(self, params: Mapping[str, Any]) -> Any:
        """Open the connection as a client. `params` may have both versions' shapes (INIT-01)."""
        raw = await self._call(INITIALIZE, msgspec.json.encode(params), None)
        # `agreement` was settled when the answer was read: what stood behind it is typed already.
        assert self._codec is not None
        return self._codec.result(INITIALIZE, raw)

    async def call(self, method: str, params: Any = None) -> Any:
        """Call the peer and return its typed result. Raises `CallFailed`, `InvalidResult`, `LinkLost`.

        A caller that is cancelled tells the peer so with `$/cancel_request`.
        """
        codec = self._agreed()
        session = getattr(params, "session_id", None)
        raw = await self._call(
            method, b"{}" if params is None else codec.encode(params), session if method in IN_LANE else None
        )
        return codec.result(method, raw)

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification; waits while the link is congested."""
        encoded = b"{}" if params is None else self._agreed().encode(params)
        frame = frames.encode_notification(method, encoded)
        if self._lost is not None:
            raise self._failure()
        self._send(frame)
        if self._transport.congested:
            await self._transport.drain()

    async def send(self, frame: bytes) -> None:
        """Send one ready-made frame; waits while the link is congested."""
        if self._lost is not None:
            raise self._failure()
        self._send(frame)
        if self._transport.congested:
            await self._transport.drain()

    def _agreed(self) -> Codec:
        if self._codec is None:
            raise LocalError("nothing can be sent before `initialize` has succeeded")
        return self._codec

    async def _call(self, method: str, params: bytes, session: str | None) -> Raw:
        lane = inside()
        if lane is not None and session is not None and lane.key == session:
            raise LaneMisuse(
                f"{method} of session {session} was awaited inside a handler of that session: its answer"
                " comes only after the handler has returned. Await it elsewhere (`start_soon`)."
            )
        if self._lost is not None:
            raise self._failure()
        call, frame = self._peer.call(method, params)
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._answers[call] = (answer, session)
        self._send(frame)
        try:
            if self._transport.congested:
                await self._transport.drain()
            if lane is None:
                return await answer
            with lane.waits_for(answer):
                return await answer
        except BaseException:
            if self._answers.pop(call, None) is not None and self._lost is None:
                cancel = self._peer.abandon(call)
                if cancel is not None:
                    self._send(cancel)
            raise

    def _send(self, frame: bytes) -> None:
        if self._tap is not None:
            self._tap("out", frame)
        self._transport.send(frame)

    # --- receiving ---------------------------------------------------------------------------------

    async def _read(self) -> None:
        reason = ""
        try:
            while received := await self._transport.receive():
                self._dispatch(received)
                if self._lanes.choked:
                    await self._lanes.room()
        except Exception as error:
            logger.exception("reading failed")
            reason = f"reading failed: {error}"
        finally:
            self._lose(reason or self._transport.end_reason or "the link ended")
        try:
            if self.role is Role.AGENT and not self._closing:
                await self._finish_serving()
        finally:
            for task in (*self._serving.values(), *self._background):
                task.cancel()  # RPC-36
            self._closed.set()

    async def _finish_serving(self) -> None:
        """A client that has closed its end may still read ours: what can be answered soon is answered."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_ANSWERS):
                while tasks := [*self._serving.values(), *self._lanes.workers()]:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    def _dispatch(self, received: list[Received]) -> None:
        if self._tap is not None:
            for frame in received:
                self._tap("in", frame)
        # The hot path: an update is typed in one pass, and a run of them goes to its lane as one.
        session, size = "", 0
        updates: list[Any] = []
        for frame in received:
            if self._update_line is not None and isinstance(frame, bytes):
                update = self._update_line(frame)
                if update is not None:
                    params = update.params
                    if params.session_id != session:
                        if updates:
                            self._lanes.get(session).put(size, self._on_update, updates)
                        session, size, updates = params.session_id, 0, []
                    updates.append(params)
                    size += len(frame)
                    continue
            if updates:
                self._lanes.get(session).put(size, self._on_update, updates)
                session, size, updates = "", 0, []
            self._receive(frame)
        if updates:
            self._lanes.get(session).put(size, self._on_update, updates)

    def _receive(self, frame: Received) -> None:
        size = len(frame) if isinstance(frame, bytes) else 0
        for event in self._peer.receive(frame):
            match event:
                case Notified():
                    self._notified(event.notification, size)
                case Called():
                    self._called(event.inbound, size)
                case Answered():
                    self._answered(event, size)
                case CancelAsked():
                    # In the lane of its request, so that it finds the request begun or not begun.
                    lane = self._lanes.get(_session_named(event.inbound.params))
                    lane.put(0, self._cancel_serving, (event.inbound,))
                case Fault():
                    self._report(event.reason, event.excerpt)
                    if event.reply is not None:
                        self._send(event.reply)

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
            self._report(
                f"a {notification.method} was dropped: {error}", bytes(notification.params or b"")[:200]
            )
            return
        self._lanes.get(session_of(params)).put(size, handler, (params,))

    def _called(self, inbound: Inbound, size: int) -> None:
        lane = self._lanes.get(None)
        try:
            if inbound.method == INITIALIZE and self.role is Role.AGENT:
                self._admit(opening.Input.INITIALIZE)
                act: Callable[[], Awaitable[bytes]] = self._opener(inbound)
            else:
                if self.role is Role.AGENT:
                    self._admit(opening.Input.REQUEST)
                act, lane = self._request(inbound)
        except AntiphonError as error:
            self._fail(inbound, to_wire_error(error))
            return
        if lane.idle:
            # Nothing stands before it: begin at once, and let what comes behind wait for that.
            lane.gate = self._begin(inbound, act, lane)
        else:
            lane.put(size, self._serve, ((inbound, act, lane),))

    def _admit(self, input: opening.Input) -> None:
        if self._opening.step(input) is not opening.Verdict.SERVE:
            if input is opening.Input.INITIALIZE:
                raise InvalidRequest("this connection is already initialized")
            raise InvalidRequest("the connection is not initialized")

    def _request(self, inbound: Inbound) -> tuple[Callable[[], Awaitable[bytes]], Lane]:
        handler = self._requests.get(inbound.method)
        codec = self._codec
        if codec is None:
            raise InvalidRequest("the connection is not initialized")
        if handler is None:
            raise MethodNotFound(inbound.method)
        params = codec.params(Kind.REQUEST, inbound.method, inbound.params)

        async def act() -> bytes:
            result = await handler(params, inbound)
            return b"{}" if result is None else codec.encode(result)

        return act, self._lanes.get(session_of(params))

    def _opener(self, inbound: Inbound) -> Callable[[], Awaitable[bytes]]:
        async def act() -> bytes:
            try:
                if self._on_initialize is None:
                    raise LocalError("an agent's connection needs `on_initialize`")
                selected = self.agreement.version if self.agreement else None
                offer = read_offer(_json(inbound.params), supported=self._supported, selected=selected)
                chosen = codec(offer.version)
                agreement, result = await self._on_initialize(offer, decode_offer(chosen, offer))
                answer = chosen.encode(result)
            except BaseException:
                self._opening.step(opening.Input.FAILED)
                raise
            self._opening.step(opening.Input.SUCCEEDED)
            self._agree(agreement)
            return answer

        return act

    def _agree(self, agreement: Agreement) -> None:
        self.agreement = agreement
        self._codec = codec(agreement.version)
        if self.role is Role.CLIENT and UPDATE in self._notifications:
            self._update_line = self._codec.update_line
            self._on_update = self._notifications[UPDATE]
        self._peer.strict_ids = agreement.version >= V2  # RPC-03

    # --- serving -----------------------------------------------------------------------------------

    async def _serve(self, request: tuple[Inbound, Callable[[], Awaitable[bytes]], Lane]) -> None:
        """Start a request's handler, and give the lane on once it waits for something or is done."""
        inbound, act, lane = request
        if inbound.cancelled:
            self._fail(inbound, RequestCancelled().to_wire())
            return
        await self._begin(inbound, act, lane)

    def _begin(
        self, inbound: Inbound, act: Callable[[], Awaitable[bytes]], lane: Lane
    ) -> asyncio.Future[None]:
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def ended(_: asyncio.Task[None]) -> None:
            self._serving.pop(inbound, None)
            if not begun.done():  # cancelled before its first step
                self._pass(lane, begun)

        task = self._serving[inbound] = self._start(self._answer(inbound, act, lane, begun), None)
        task.add_done_callback(ended)
        return begun

    def _pass(self, lane: Lane, begun: asyncio.Future[None]) -> None:
        begun.set_result(None)
        if lane.gate is begun:
            lane.gate = None
            self._lanes.emptied(lane)

    async def _answer(
        self,
        inbound: Inbound,
        act: Callable[[], Awaitable[bytes]],
        lane: Lane,
        begun: asyncio.Future[None],
    ) -> None:
        # Whoever waits for `begun` wakes after this step, so after the handler's first `await`.
        self._pass(lane, begun)
        try:
            result = await act()
        except asyncio.CancelledError:
            # RPC-31, RPC-34: cancelled by its sender or by our own ending, it is answered all the same.
            self._fail(inbound, RequestCancelled().to_wire())
            if not inbound.cancelled:
                raise
        except Exception as error:
            if inbound.cancelled:
                self._fail(inbound, RequestCancelled().to_wire())
                return
            if not isinstance(error, AntiphonError) or isinstance(error, LocalError):
                logger.exception("the handler of %s failed", inbound.method)
            self._fail(inbound, to_wire_error(error))
        else:
            frame = self._peer.answer(inbound, result)
            if frame is not None:
                self._send(frame)

    def _fail(self, inbound: Inbound, error: ErrorObject) -> None:
        frame = self._peer.fail(inbound, error)
        if frame is not None:
            self._send(frame)

    def _cancel_serving(self, inbound: Inbound) -> None:
        task = self._serving.get(inbound)
        if task is not None:
            task.cancel()

    # --- answers -----------------------------------------------------------------------------------

    def _answered(self, event: Answered, size: int) -> None:
        entry = self._answers.pop(event.call, None)
        if entry is None:
            return
        future, session = entry
        if event.call.method == INITIALIZE and event.result is not None:
            # Settled while reading: the frames behind this answer are already in its version.
            try:
                self._agree(read_answer(_json(event.result), supported=self._supported))
            except RemoteError as error:
                _settle((future, error))
                return
        outcome: Raw | AntiphonError
        if event.error is not None:
            outcome = CallFailed(event.call.method, event.error)
        else:
            assert event.result is not None
            outcome = event.result
            if event.call.method in OPENS_LANE:
                session = _session_named(event.result)
        self._deliver(session, size, (future, outcome))

    def _deliver(
        self, session: str | None, size: int, settled: tuple[asyncio.Future[Raw], Raw | AntiphonError]
    ) -> None:
        lane = None if session is None else self._lanes.find(session)
        if lane is None or lane.idle:
            _settle(settled)
        else:
            lane.put(size, _settle, (settled,))

    # --- the end -----------------------------------------------------------------------------------

    def _lose(self, reason: str) -> None:
        self._lost = LinkLost(reason, stderr=self._transport.stderr)
        self._peer.close()
        answers, self._answers = self._answers, {}
        for future, session in answers.values():
            # Also this end travels in the lane: what came before it is handled before it.
            self._deliver(session, 0, (future, self._failure()))

    def _failure(self) -> LinkLost:
        assert self._lost is not None
        return LinkLost(self._lost.reason, stderr=self._lost.stderr)

    # --- reports -----------------------------------------------------------------------------------

    def _report(self, reason: str, excerpt: bytes = b"") -> None:
        logger.warning("%s%s", reason, f": {excerpt!r}" if excerpt else "")

    def _report_error(self, error: BaseException) -> None:
        logger.error("a handler failed", exc_info=error)


def session_of(params: Any) -> str | None:
    """The session that params belong to, typed or plain."""
    session = params.get("sessionId") if isinstance(params, dict) else getattr(params, "session_id", None)
    return session if isinstance(session, str) else None


_named = msgspec.json.Decoder(_SessionNamed)


def _session_named(raw: Raw | None) -> str | None:
    try:
        return _named.decode(raw or b"{}").session_id
    except msgspec.MsgspecError:
        return None


def _ignore(_: Any) -> None:
    """The handler of updates that nobody asked to see."""


def _json(raw: Raw | None) -> Any:
    return {} if raw is None else msgspec.json.decode(raw)


def _settle(settled: tuple[asyncio.Future[Raw], Raw | AntiphonError]) -> None:
    future, outcome = settled
    if future.done():
        return
    if isinstance(outcome, AntiphonError):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def decode_offer(codec: Codec, offer: Offer) -> Any:
    """The params of `initialize`, typed. Asked for a newer version, what does not parse is dropped (INIT-09)."""
    params = dict(offer.params)
    while True:
        try:
            return codec.params(Kind.REQUEST, INITIALIZE, msgspec.json.encode(params))
        except InvalidParams:
            if offer.exact:
                raise
        kept = {"protocolVersion": params["protocolVersion"]}
        if offer.version >= V2:
            kept["info"] = params["info"]
        for key, value in params.items():
            try:
                codec.params(Kind.REQUEST, INITIALIZE, msgspec.json.encode({**kept, key: value}))
            except InvalidParams:
                continue
            kept[key] = value
        params = kept


__all__ = ["Connection", "Role"]
