"""Calls: the requests that this side made, and the delivery of their responses.

The response to a call such as `session/prompt` goes through the lane of its session, so its caller wakes only
after all earlier frames of the session have been handled. So does the error if the link is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Raw, Struct

from antiphon.connection.lanes import Lanes, current_lane
from antiphon.connection.sessions import session_named
from antiphon.errors import AntiphonError, CallFailed, LaneMisuse
from antiphon.jsonrpc.peer import Answered, Call, Peer

IN_LANE = frozenset(
    {
        "session/prompt",
        "session/load",
        "session/resume",
        "session/close",
        "session/set_config_option",  # its result is the complete list, like an update
        "session/set_mode",
        "session/set_model",
    }
)
"""Calls whose responses are delivered in the lane of the session in their params."""
OPENS_LANE = frozenset({"session/new", "session/fork"})
"""Calls whose responses are delivered in the lane of the session in their result."""


Outcome = Raw | AntiphonError
OnOutcome = Callable[[Outcome], None]
"""Handles the outcome of a call, at its place in the lane."""


class _Pending(Struct):
    on_outcome: OnOutcome
    session: str | None
    frame: bytes | None = None
    """The request, to send it again on the next link; `None` if it fails with this link."""


class Calls:
    def __init__(self, peer: Peer, lanes: Lanes, send: Callable[[bytes], None]) -> None:
        self._peer = peer
        self._lanes = lanes
        self._send = send
        self._pending: dict[Call, _Pending] = {}
        self._failure: Callable[[], AntiphonError] | None = None
        self._away: Callable[[], AntiphonError] | None = None
        """Makes the error for calls between two links; `None` while a link is in use."""

    def begin(
        self,
        method: str,
        params: bytes,
        session: str | None,
        on_outcome: OnOutcome,
        *,
        lasting: bool = False,
        first: bool = False,
    ) -> Call:
        """Send a request. `on_outcome` gets its result or error, unless it is abandoned before.

        `lasting`: it is sent again on the next link.
        `first`: it is sent even if the next link is not in use yet.
        """
        self.check(lasting or first)
        call, frame = self._peer.call(method, params)
        named = session if method in IN_LANE else None
        self._pending[call] = _Pending(on_outcome, named, frame if lasting else None)
        if self._away is None or first:
            self._send(frame)
        return call

    def check(self, waits: bool = False) -> None:
        """Raise if nothing can be sent now or, for a call that `waits` for the next link, ever."""
        failure = self._failure or (None if waits else self._away)
        if failure is not None:
            raise failure()

    def abandon(self, call: Call) -> None:
        """Stop waiting for a response, and send `$/cancel_request`."""
        if self._pending.pop(call, None) is not None:
            cancel = self._peer.abandon(call)
            if cancel is not None:
                self._send(cancel)

    async def call(self, method: str, params: bytes, session: str | None, *, first: bool = False) -> Raw:
        """Send a request and wait for its result. If the caller is cancelled, the call is abandoned."""
        lane = current_lane()
        if method in IN_LANE and lane is not None and lane.key == session:
            raise LaneMisuse(
                f"{method} of session {session} was awaited inside a handler of that session: its answer"
                " comes only after the handler has returned. Await it elsewhere (`start_soon`)."
            )
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        call = self.begin(method, params, session, lambda outcome: _wake(answer, outcome), first=first)
        try:
            if lane is None:
                return await answer
            with lane.waits_for(answer):
                return await answer
        except BaseException:
            self.abandon(call)
            raise

    def answered(self, event: Answered, size: int, *, unfit: AntiphonError | None = None) -> None:
        """Deliver a response. `unfit` is the error to deliver instead of an invalid result."""
        pending = self._pending.pop(event.call, None)
        if pending is None:
            return
        if event.result is None:
            assert event.error is not None
            outcome: Outcome = CallFailed(event.call.method, event.error)
        else:
            outcome = unfit or event.result
            if event.call.method in OPENS_LANE:
                pending.session = session_named(event.result)
        self._deliver(pending, size, outcome)

    def lose(self, failure: Callable[[], AntiphonError]) -> None:
        """Fail every call, now and later, because the link is gone. `failure` makes the errors."""
        self._failure = failure
        lost, self._pending = self._pending, {}
        for pending in lost.values():
            self._deliver(pending, 0, failure())

    def cut(self, failure: Callable[[], AntiphonError]) -> None:
        """Fail every call that is not `lasting`, because another link replaces this one."""
        self._away = failure
        before, self._pending = self._pending, {}
        self._pending = {call: pending for call, pending in before.items() if pending.frame is not None}
        self._peer.renew(self._pending)
        for pending in before.values():
            if pending.frame is None:
                self._deliver(pending, 0, failure())

    def restored(self) -> None:
        """Send the lasting calls on the next link."""
        self._away = None
        for pending in self._pending.values():
            if pending.frame is not None:
                self._send(pending.frame)

    def _deliver(self, pending: _Pending, size: int, outcome: Outcome) -> None:
        if pending.session is None or self._lanes.idle(pending.session):
            pending.on_outcome(outcome)
        else:
            self._lanes.get(pending.session).put(size, deliver_outcome, ((pending.on_outcome, outcome),))


def deliver_outcome(step: tuple[OnOutcome, Outcome]) -> None:
    """Call the handler of an outcome, as a step of a lane."""
    on_outcome, outcome = step
    on_outcome(outcome)


def _wake(answer: asyncio.Future[Raw], outcome: Outcome) -> None:
    if answer.done():
        return
    if isinstance(outcome, AntiphonError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
