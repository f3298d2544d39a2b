"""Peer: one side of a JSON-RPC conversation, without I/O.

It has both id spaces (RPC-07): calls of this side without a response, and received requests without a
response. `receive` takes one frame and returns events; frames to send are returned as bytes. A fault of the
peer is an event, not an exception.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from antiphon.errors import (
    ErrorObject,
    InvalidRequest,
    LocalError,
    RemoteError,
    TooComplex,
    TooLarge,
    one_line,
)
from antiphon.jsonrpc import frames
from antiphon.jsonrpc.frames import (
    Failure,
    Frame,
    MalformedResponse,
    Notification,
    Request,
    RequestId,
    Response,
)
from antiphon.jsonrpc.lines import Received
from antiphon.jsonrpc.oversized import HEAD, TAIL, OversizedFrame, read_partial

CANCEL_REQUEST = "$/cancel_request"


class Call:
    """A request that this side made."""

    __slots__ = ("abandoned", "cancel_sent", "id", "method")

    def __init__(self, id: int, method: str) -> None:
        self.id = id
        self.method = method
        self.cancel_sent = False
        self.abandoned = False


class Inbound:
    """A request of the peer, until it has a response."""

    __slots__ = ("answered", "cancelled", "id", "method", "params", "session", "size")

    def __init__(self, request: Request) -> None:
        self.id = request.id
        self.method = request.method
        self.params = request.params
        """The raw params; `None` once they were decoded, if nothing else needs them."""
        self.size = len(request.params or b"")
        """Bytes of the raw params."""
        self.session: str | None = None
        """The session that it belongs to, once its params were decoded."""
        self.cancelled = False
        self.answered = False


class Answered(Struct, frozen=True):
    """A call of this side has a response, with `result` or `error`."""

    call: Call
    result: Raw | None
    error: ErrorObject | None


class CancelAsked(Struct, frozen=True):
    """The peer has cancelled a request, which still needs a response (RPC-31)."""

    inbound: Inbound


class Fault(Struct, frozen=True):
    """A frame that cannot be used. `reply` is the error response, if it gets one."""

    reason: str
    excerpt: bytes = b""
    reply: bytes | None = None
    expected: bool = False
    """Whether neither side is at fault, because two frames crossed."""
    due: bool = False
    """Whether the peer waits for `reply`, because it answers a request."""


Event = Inbound | Notification | Answered | CancelAsked | Fault
"""An `Inbound` is a request to serve: call `Peer.answer` or `Peer.fail` for it exactly once."""


class _CancelParams(Struct, rename="camel"):
    request_id: str | int | float | None


_cancel_params = msgspec.json.Decoder(_CancelParams)


class Peer:
    def __init__(self) -> None:
        self.strict_ids = False
        """Set once v2 is agreed, in which `null` and fractions are not ids (RPC-03, RPC-04)."""
        self._next_id = 0
        # The keys are type and value: `1`, `1.0` and `"1"` are three ids (RPC-05).
        self._calls: dict[tuple[type, RequestId], Call] = {}
        self._inbound: dict[tuple[type, RequestId], Inbound] = {}
        self._nameless: list[Inbound] = []

    # --- receiving ---------------------------------------------------------------------------------

    def receive(self, frame: Received) -> list[Event]:
        """Return the events of one received frame."""
        if isinstance(frame, OversizedFrame):
            return [self._too_large(frame)]
        try:
            decoded = frames.decode(frame)
        except TooComplex as error:
            return [self._too_complex(frame, error)]
        except RemoteError as error:
            return [self._refuse(error, frame)] if frame.strip() else []
        return [self._receive_one(decoded, frame)]

    def _too_large(self, frame: OversizedFrame) -> Event:
        """Fail an oversized request under its id, or the call that an oversized response answers."""
        error = TooLarge(frame.size, frame.bound)
        return self._fail_unread(frame.id, error, answers=frame.answers)

    def _too_complex(self, frame: bytes, error: TooComplex) -> Event:
        """The same for a frame that is not parsed. A notification is dropped."""
        partial = read_partial(frame[:HEAD], frame[-TAIL:])
        if partial.id is UNSET and partial.method is not None:
            return Fault(f"dropped a {partial.method!r} of session {partial.session!r}: {error}", frame[:200])
        return self._fail_unread(partial.id, error, answers=partial.answers)

    def _fail_unread(self, id: RequestId | UnsetType, error: RemoteError, *, answers: bool) -> Event:
        if answers and id is not UNSET:
            return self._answered(id, None, error.to_wire(), b"")
        if id is UNSET or (type(id), id) in self._inbound or (self.strict_ids and isinstance(id, float)):
            return self._refuse(error)
        return Fault(str(error), reply=frames.encode_failure(id, error.to_wire()), due=True)

    def _receive_one(self, frame: Frame | MalformedResponse, line: bytes) -> Event:
        if isinstance(frame, Request):
            return self._called(frame, line)
        if isinstance(frame, Response):
            return self._answered(frame.id, frame.result, None, line)
        if isinstance(frame, Notification):
            if frame.method == CANCEL_REQUEST:
                return self._cancel_asked(frame, line)
            return frame
        if isinstance(frame, Failure):
            return self._answered(frame.id, None, frame.error, line)
        if (type(frame.id), frame.id) in self._calls:
            broken = ErrorObject(-32603, f"The response is malformed: {frame.reason}")
            return self._answered(frame.id, None, broken, line)
        return Fault(f"a malformed response was dropped: {frame.reason}", line[:200])

    def _called(self, request: Request, line: bytes) -> Event:
        if self.strict_ids and (request.id is None or isinstance(request.id, float)):
            return self._refuse(
                InvalidRequest(f"`id` must be a string or an integer, got {_encoded(request.id)}"), line
            )
        inbound = Inbound(request)
        if request.id is None:
            self._nameless.append(inbound)
        elif (type(request.id), request.id) in self._inbound:
            # An error with that id would be the response to the first request (RPC-06).
            return self._refuse(InvalidRequest(f"the id {_encoded(request.id)} is still in use"), line)
        else:
            self._inbound[(type(request.id), request.id)] = inbound
        return inbound

    def _answered(self, id: RequestId, result: Raw | None, error: ErrorObject | None, line: bytes) -> Event:
        call = self._calls.pop((type(id), id), None)
        if call is None:
            return Fault("a response with the id of no call was dropped", line[:200])
        if call.abandoned:
            # RPC-35
            return Fault(
                f"a late response to an abandoned {call.method} was dropped", line[:200], expected=True
            )
        return Answered(call, result, error)

    def _cancel_asked(self, notification: Notification, line: bytes) -> Event:
        try:
            id = _cancel_params.decode(notification.params or b"{}").request_id
        except msgspec.MsgspecError as error:
            return Fault(f"a malformed {CANCEL_REQUEST} was ignored: {error}", line[:200])
        inbound = self._inbound.get((type(id), id))
        if inbound is None:
            late = f"a {CANCEL_REQUEST} for no pending request was ignored"
            return Fault(late, line[:200], expected=True)  # RPC-33
        inbound.cancelled = True
        return CancelAsked(inbound)

    def _refuse(self, error: RemoteError, line: bytes = b"") -> Fault:
        """Make an error response with `id: null`, because the request is unknown (RPC-09, RPC-10, RPC-11)."""
        return Fault(str(error), line[:200], frames.encode_failure(None, error.to_wire()))

    # --- sending -----------------------------------------------------------------------------------

    def call(self, method: str, params: bytes) -> tuple[Call, bytes]:
        call = Call(self._next_id, method)
        self._next_id += 1
        self._calls[int, call.id] = call
        return call, frames.encode_request(call.id, method, params)

    def cancel(self, call: Call) -> bytes | None:
        """Return a `$/cancel_request`; `None` if it was sent or the call has a response."""
        if call.cancel_sent or (int, call.id) not in self._calls:
            return None
        call.cancel_sent = True
        return frames.encode_notification(CANCEL_REQUEST, b'{"requestId":%d}' % call.id)

    def abandon(self, call: Call) -> bytes | None:
        """Stop waiting. The id stays in use until the late response was dropped (RPC-35)."""
        call.abandoned = True
        return self.cancel(call)

    def answer(self, inbound: Inbound, result: bytes) -> bytes:
        """Return the frame to send."""
        return self._close(inbound, frames.encode_response(inbound.id, result))

    def fail(self, inbound: Inbound, error: ErrorObject) -> bytes:
        return self._close(inbound, frames.encode_failure(inbound.id, error))

    def _close(self, inbound: Inbound, frame: bytes) -> bytes:
        if inbound.answered:
            raise LocalError(f"{inbound.method} (id {inbound.id!r}) already has a response")
        inbound.answered = True
        if inbound.id is not None:
            self._inbound.pop((type(inbound.id), inbound.id), None)
        elif inbound in self._nameless:
            self._nameless.remove(inbound)
        return frame

    # --- the end -----------------------------------------------------------------------------------

    def close(self) -> tuple[list[Call], list[Inbound]]:
        """Forget all requests: the link is gone. Return the calls to fail and requests to abort (RPC-36)."""
        calls = [call for call in self._calls.values() if not call.abandoned]
        inbounds = [*self._inbound.values(), *self._nameless]
        self._calls.clear()
        self._inbound.clear()
        self._nameless.clear()
        return calls, inbounds

    def renew(self, kept: Iterable[Call]) -> None:
        """Continue on another link. Only `kept` calls can still get a response, and the peer's requests get
        none. Ids of calls continue."""
        _, inbounds = self.close()
        for inbound in inbounds:
            inbound.answered = True
        self._calls.update({(int, call.id): call for call in kept})

    @property
    def unanswered(self) -> int:
        """Requests of the peer without a response."""
        return len(self._inbound) + len(self._nameless)

    @property
    def pending(self) -> Iterable[Call]:
        return self._calls.values()


def _encoded(id: RequestId) -> str:
    """Return an id as JSON, shortened for an error message."""
    return one_line(msgspec.json.encode(id).decode(), limit=60)
