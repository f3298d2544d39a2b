"""Receiver: hands every frame of the peer to its handler, in order.

All frames of a session go through that session's lane in receive order: updates, requests and notifications
that name the session, and the responses to prompt, load, resume and similar calls. A request's handler runs
in the lane up to its first `await`, and waits outside. So a cancel cannot overtake its prompt, and when the
response to a prompt wakes its caller, all earlier updates have been handled (RPC-37, PROMPT-V1-04).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from antiphon.connection.calls import Calls
from antiphon.connection.fault_log import FaultLog
from antiphon.connection.handlers import Handlers
from antiphon.connection.inbound_requests import InboundRequests, Job
from antiphon.connection.initialization import INITIALIZE, Initialization, Role
from antiphon.connection.lanes import Lanes
from antiphon.connection.sessions import session_named
from antiphon.errors import (
    AntiphonError,
    InvalidRequest,
    MethodNotFound,
    RequestError,
    TooLarge,
    to_wire_error,
)
from antiphon.jsonrpc.frames import Notification
from antiphon.jsonrpc.lines import Received
from antiphon.jsonrpc.peer import Answered, CancelAsked, Fault, Inbound, Peer
from antiphon.schema.handshake import State
from antiphon.schema.methods import Kind
from antiphon.schema.updates import UPDATE, UpdateReader, is_update, may_be_update, unread

logger = logging.getLogger("antiphon.connection")

MAX_ANSWERED_FAULTS = 100
"""Malformed frames that get an error response, per connection."""
MAX_UNANSWERED = 4096
"""Requests of a peer that may wait for a response; more are refused."""
FRAMES_PER_CLOCK_CHECK = 16
"""Frames that are handled between two looks at the clock."""
MIN_RUN = 8
"""Frames from which it is faster to decode a run of updates in one call."""


class Receiver:
    """`send` sends the responses to malformed frames."""

    def __init__(
        self,
        peer: Peer,
        role: Role,
        *,
        initialization: Initialization,
        handlers: Handlers,
        lanes: Lanes,
        calls: Calls,
        inbound_requests: InboundRequests,
        send: Callable[[bytes], None],
    ) -> None:
        self._peer = peer
        self._role = role
        self._initialization = initialization
        self._handlers = handlers
        self._lanes = lanes
        self._calls = calls
        self._inbound_requests = inbound_requests
        self._send = send
        self._answered_faults = 0
        self.faults = FaultLog(logger, "protocol fault of a peer")

    def receive(
        self, received: list[Received], is_over: Callable[[], bool] = lambda: False
    ) -> list[Received]:
        """Handle frames in order until `is_over`. Return the remaining frames."""
        reader = self._initialization.updates
        if reader is not None and self._handlers.on_text_chunks is not None:
            received, more = self._take_text_chunks(reader, received, is_over)
            if not more:
                return received
        many = len(received)
        if reader is not None and many >= MIN_RUN:
            # A stream of updates, perhaps with a response at its end: decode the updates in one call.
            while many and not is_update(received[many - 1]):
                many -= 1
            updates = reader.read_all(received[:many]) if many >= MIN_RUN else None
            if updates is not None:
                self._updated(updates, received)
                received = received[many:]
        for at, frame in enumerate(received):
            if at % FRAMES_PER_CLOCK_CHECK == FRAMES_PER_CLOCK_CHECK - 1 and is_over():
                return received[at:]
            if reader is not None and isinstance(frame, bytes):
                update = reader.read(frame)
                if update is not None:
                    self._updated([update], (frame,))
                    continue
            try:
                self._receive(frame)
            except Exception:
                # A bug in this side costs one frame, not the link.
                logger.exception("frame handler failed; the frame is dropped")
        return []

    def _take_text_chunks(
        self, reader: UpdateReader, received: list[Received], is_over: Callable[[], bool]
    ) -> tuple[list[Received], bool]:
        """Handle plain text chunks at the start of `received`. Return the other frames, and whether there is
        time for them. An idle session's handler runs in place: to start a task would be most of the delay."""
        many = len(received)
        while many and not may_be_update(received[many - 1]):
            many -= 1
        runs = reader.read_text_chunks(received[:many]) if many else None
        if runs is None:
            return received, True
        act = self._handlers.on_text_chunks
        assert act is not None
        first = 0
        for at, run in enumerate(runs):
            if at % FRAMES_PER_CLOCK_CHECK == FRAMES_PER_CLOCK_CHECK - 1 and is_over():
                return received[first:], False
            upto = first + len(run[1])
            size = sum(map(len, received[first:upto]))  # type: ignore[arg-type]  # only lines were decoded
            self._lanes.get(run[0]).do(size, act, run)
            first = upto
        return received[many:], True

    def _updated(self, updates: list[Any], lines: Sequence[Any]) -> None:
        """Put each run of updates of one session into its lane."""
        handler, given = self._handlers.notifications[UPDATE], updates
        if self._handlers.on_written is not None:
            handler, given = self._handlers.on_written, list(zip(updates, lines, strict=False))
        first, session = 0, updates[0].session_id
        for at, update in enumerate(updates):
            if update.session_id != session:
                size = sum(map(len, lines[first:at]))
                self._lanes.get(session).put(size, handler, given[first:at])
                first, session = at, update.session_id
        size = sum(map(len, lines[first : len(updates)]))
        self._lanes.get(session).put(size, handler, given[first:] if first else given)

    def _receive(self, frame: Received) -> None:
        size = len(frame) if isinstance(frame, bytes) else 0
        for event in self._peer.receive(frame):
            if isinstance(event, Inbound):
                self._called(event, size)
            elif isinstance(event, Answered):
                self._answered(event, size)
            elif isinstance(event, Notification):
                self._notified(event, size)
            elif isinstance(event, CancelAsked):
                # In the lane of its request, so that it finds the request begun or not begun.
                inbound = event.inbound
                lane = self._lanes.get(inbound.session or session_named(inbound.params))
                lane.put(0, self._inbound_requests.cancel, (inbound,))
            else:
                self._fault(event)

    def _fault(self, fault: Fault) -> None:
        """Log a fault of the peer, and send its error response. Their number is bounded: a peer that copies
        its input to its stdout would otherwise cause endless responses (RPC-10)."""
        self._answered_faults += fault.reply is not None and not fault.due
        answered = fault.due or self._answered_faults <= MAX_ANSWERED_FAULTS
        if fault.expected:
            logger.debug("%s", fault.reason)
        elif self.faults.note(fault.reason) and fault.excerpt:  # OBS-06: it may contain user content
            logger.debug("protocol fault of a peer: the frame began with %r", fault.excerpt)
        if fault.reply is not None and answered:
            self._send(fault.reply)

    def _answered(self, event: Answered, size: int) -> None:
        unfit: AntiphonError | None = None
        if event.call.method == INITIALIZE and event.result is not None:
            unfit = self._initialization.answered(event.result)
        self._calls.answered(event, size, unfit=unfit)

    def _notified(self, notification: Notification, size: int) -> None:
        if self._role is Role.AGENT and not self._initialization.admits_notification():
            return  # INIT-25
        method, codec, handlers = notification.method, self._initialization.codec, self._handlers
        handler = handlers.notifications.get(method)
        if handler is None and method.startswith("_") and handlers.on_extension_notified is not None:
            handler = partial(handlers.on_extension_notified, method)
        if handler is None or codec is None:
            return  # RPC-19
        on_written = handlers.on_written if method == UPDATE else None
        try:
            params = codec.params(Kind.NOTIFICATION, method, notification.params)
        except AntiphonError as error:
            params = None if on_written is None else unread(notification.params)
            self.faults.note(f"{method} {'was dropped' if params is None else 'is malformed'}: {error}")
            if params is None:
                return
        session = handlers.lane_of(method, params)
        if session is None and handlers.in_one_stream and method.startswith("_"):
            self._lanes.put_behind_all(size, handler, params)
            return
        lane = self._lanes.get(session)
        if on_written is not None:
            lane.put(size, on_written, ((params, notification.params),))
        else:
            lane.put(size, handler, (params,))

    def _called(self, inbound: Inbound, size: int) -> None:
        initialization = self._initialization
        try:
            if self._peer.unanswered > MAX_UNANSWERED:
                data = {"reason": "limit", "limit": "requests", "most": MAX_UNANSWERED}
                raise RequestError(TooLarge.code, "Too many: requests without an answer", data=data)
            if self._role is Role.AGENT and inbound.method == INITIALIZE:
                initialization.admit_initialize()
                job = Job(inbound, None, initialization.answer, None, bytes)
            else:
                if self._role is Role.AGENT and initialization.handshake.state is not State.IN_USE:
                    initialization.admit_request()
                job = self._job(inbound)
        except AntiphonError as error:
            self._inbound_requests.fail(inbound, to_wire_error(error))
        else:
            self._inbound_requests.serve(job, size)

    def _job(self, inbound: Inbound) -> Job:
        handlers, codec = self._handlers, self._initialization.codec
        handler = handlers.requests.get(inbound.method)
        if codec is None:
            raise InvalidRequest("the connection is not initialized")
        if handler is None and inbound.method.startswith("_"):
            handler = handlers.on_extension
        if handler is None:
            raise MethodNotFound(inbound.method)
        params = codec.params(Kind.REQUEST, inbound.method, inbound.params)
        inbound.session = handlers.lane_of(inbound.method, params)
        if self._role is Role.AGENT:
            inbound.params = None  # a prompt may be large, and stays until its turn ends
        unbegun = handlers.unbegun.get(inbound.method)
        return Job(inbound, inbound.session, handler, params, codec.encode, unbegun)
