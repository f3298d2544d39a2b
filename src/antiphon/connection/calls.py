"""Calls: the requests this side has made, and the delivery of their answers.

An answer that closes a span of a session travels in that session's lane, so its caller wakes only after
everything that was sent before it has been handled. So does the news that there will be no answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Raw, Struct

from antiphon.connection.lanes import Lanes, inside
from antiphon.connection.sessions import session_named
from antiphon.errors import AntiphonError, CallFailed, LaneMisuse
from antiphon.jsonrpc.peer import Answered, Call, Peer

IN_LANE = frozenset(
    {
        "session/prompt",
        "session/load",
        "session/resume",
        "session/close",
        "session/set_config_option",  # its answer is the complete list, as an update is
        "session/set_mode",
        "session/set_model",
    }
)
"""Calls whose answers are delivered in the lane of the session they name."""
OPENS_LANE = frozenset({"session/new", "session/fork"})
"""Calls whose answers are delivered in the lane of the session their result names."""


Outcome = Raw | AntiphonError
Settled = Callable[[Outcome], None]
"""What is done with an answer, at its place in the lane."""


class _Pending(Struct):
    settled: Settled
    session: str | None
    frame: bytes | None = None
    """To be sent again on the next link, where it outlives this one."""


class Calls:
    def __init__(self, peer: Peer, lanes: Lanes, send: Callable[[bytes], None]) -> None:
        self._peer = peer
        self._lanes = lanes
        self._send = send
        self._pending: dict[Call, _Pending] = {}
        self._failure: Callable[[], AntiphonError] | None = None
        self._away: Callable[[], AntiphonError] | None = None
        """Set while a link was lost and the next one is not in use yet."""

    def begin(
        self,
        method: str,
        params: bytes,
        session: str | None,
        settled: Settled,
        *,
        lasting: bool = False,
        first: bool = False,
    ) -> Call:
        """Send a request; `settled` is called with what comes of it, unless it is abandoned before. One that
        is `lasting` is sent again on the next link; one to be sent `first` takes that link into use."""
        self.check(lasting or first)
        call, frame = self._peer.call(method, params)
        named = session if method in IN_LANE else None
        self._pending[call] = _Pending(settled, named, frame if lasting else None)
        if self._away is None or first:
            self._send(frame)
        return call

    def check(self, waits: bool = False) -> None:
        """Raise where nothing can be sent now, or, for what `waits`, ever."""
        failure = self._failure or (None if waits else self._away)
        if failure is not None:
            raise failure()

    def abandon(self, call: Call) -> None:
        """Give up on an answer, and tell the peer so."""
        if self._pending.pop(call, None) is not None:
            cancel = self._peer.abandon(call)
            if cancel is not None:
                self._send(cancel)

    async def call(self, method: str, params: bytes, session: str | None, *, first: bool = False) -> Raw:
        """Send a request and wait for its answer. Giving up tells the peer so."""
        lane = inside()
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
        """An answer was read. `unfit` is what is wrong with it, if it was looked at already."""
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
        """The link is gone: every call fails with what `failure` makes."""
        self._failure = failure
        lost, self._pending = self._pending, {}
        for pending in lost.values():
            self._deliver(pending, 0, failure())

    def cut(self, failure: Callable[[], AntiphonError]) -> None:
        """The link is gone and another one follows: what does not last fails."""
        self._away = failure
        before, self._pending = self._pending, {}
        self._pending = {call: pending for call, pending in before.items() if pending.frame is not None}
        self._peer.renew(self._pending)
        for pending in before.values():
            if pending.frame is None:
                self._deliver(pending, 0, failure())

    def restored(self) -> None:
        """The next link is in use: what lasts goes there."""
        self._away = None
        for pending in self._pending.values():
            if pending.frame is not None:
                self._send(pending.frame)

    def _deliver(self, pending: _Pending, size: int, outcome: Outcome) -> None:
        if pending.session is None or self._lanes.idle(pending.session):
            pending.settled(outcome)
        else:
            self._lanes.get(pending.session).put(size, settle, ((pending.settled, outcome),))


def settle(step: tuple[Settled, Outcome]) -> None:
    """Deliver an outcome, in its lane."""
    settled, outcome = step
    settled(outcome)


def _wake(answer: asyncio.Future[Raw], outcome: Outcome) -> None:
    if answer.done():
        return
    if isinstance(outcome, AntiphonError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
