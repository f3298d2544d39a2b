"""Incoming: the streams that a client reads, and in which order what they bring is handed over.

The connection's own is read from `initialize` on, that of a session from before anything is posted that
belongs to it (HTTP-12), or from when an answer names it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec
from msgspec import UNSET, Struct

from antiphon.errors import ErrorObject
from antiphon.jsonrpc.frames import UNREADABLE, encode_failure
from antiphon.jsonrpc.lines import Received
from antiphon.jsonrpc.oversized import Overlong
from antiphon.jsonrpc.sse import Event
from antiphon.remote.frames import CLOSES, Outline, key_of, opened_session, outline
from antiphon.transports.base import Delivery
from antiphon.transports.http.event_source import DEAD, TAKEN, Reading, StreamRefused
from antiphon.transports.http.event_stream import Position

BODY_SHOWN = 8 * 1024


class Pending(Struct, frozen=True):
    """A request of this side."""

    id: Any
    method: str
    session: str | None


class Unanswered:
    def __init__(self, fail: Callable[[bytes], None]) -> None:
        """`fail` gets the answers to what nobody answers any more."""
        self._fail = fail
        self._pending: dict[tuple[str, Any], Pending] = {}
        self._asked: dict[tuple[str, Any], str] = {}
        """Sessions in which the agent asks something, by the ids of the requests (HTTP-09)."""

    def sent(self, about: Outline) -> str | None:
        """A frame is about to go out; the session that it belongs to."""
        if about.is_response:
            return self._asked.pop(key_of(about.id), None)
        if about.id is not UNSET:
            self._pending[key_of(about.id)] = Pending(about.id, about.method or "", about.session)
        return about.session

    def came(self, about: Outline, session: str | None) -> Pending | None:
        """A frame came over the stream of a session, or of none; the request that it answers."""
        if about.is_response:
            return self._pending.pop(key_of(about.id), None)
        if about.id is not UNSET and session is not None:
            self._asked[key_of(about.id)] = session
        return None

    # --- what fails (HTTP-18) ----------------------------------------------------------------------

    def fail(self, id: Any, refused: StreamRefused) -> None:
        pending = self._pending.pop(key_of(id), None)
        if pending is not None:
            data = {"status": refused.status, "body": _shown(refused.body)}
            error = ErrorObject(-32603, f"the server answered with {refused.status}", data)
            self._fail(encode_failure(pending.id, _read_error(refused.body) or error))

    def fail_session(self, session: str, refused: StreamRefused) -> None:
        for pending in tuple(self._pending.values()):
            if pending.session == session:
                self.fail(pending.id, refused)


class _Refusal(Struct):
    error: ErrorObject


def _read_error(body: bytes) -> ErrorObject | None:
    """The JSON-RPC error that a server answered with, where it is one."""
    try:
        return msgspec.json.decode(body, type=_Refusal).error
    except UNREADABLE:
        return None


def _shown(body: bytes) -> Any:
    """What a server said, as far as it is worth showing."""
    try:
        return msgspec.json.decode(body[:BODY_SHOWN])
    except UNREADABLE:
        return body[:BODY_SHOWN].decode("utf-8", "ignore")


Take = Callable[[list[Event | Overlong]], None]


class Lost(Protocol):
    """Hears why the connection is of no use any more, and whether it is gone for the server too."""

    def __call__(self, reason: str, *, gone: bool) -> None: ...


class Incoming:
    def __init__(
        self,
        reading: Callable[[str | None, Take], Reading],
        unanswered: Unanswered,
        delivery: Delivery,
        *,
        lost: Lost,
    ) -> None:
        """`reading` makes what reads the stream of a session, or of none."""
        self._reading = reading
        self._unanswered = unanswered
        self._delivery = delivery
        self._lost = lost
        self._streams: dict[str | None, Reading] = {}
        self._tasks: dict[Reading, asyncio.Task[None]] = {}
        self._taken: dict[str, StreamRefused] = {}
        """Sessions whose stream somebody else has, until they are opened again (HTTP-18)."""
        self._left: dict[str | None, str] = {}
        """Sessions that were closed, and the last events that were read of them."""
        self._held: dict[str, list[tuple[int, bytes]]] = {}
        """Answers that wait for the stream of their session to be read so far."""

    # --- which are read ----------------------------------------------------------------------------

    def read(self, session: str | None) -> None:
        """See to it that a stream is read."""
        if session in self._streams:
            return
        reading = self._streams[session] = self._reading(session, partial(self._take, session))
        reading.last_id = self._left.pop(session, "")
        task = self._tasks[reading] = asyncio.get_running_loop().create_task(self._follow(session, reading))
        task.add_done_callback(lambda _: self._tasks.pop(reading, None))

    async def opened(self, session: str, *, anew: bool) -> None:
        """Wait until the stream of a session is read; `anew` where it is loaded or resumed. Raises
        `StreamRefused`."""
        if anew:
            self._taken.pop(session, None)
        if session in self._taken:
            raise self._taken[session]
        self.read(session)
        await asyncio.shield(self._streams[session].opened)

    def fail_session(self, session: str, refused: StreamRefused) -> None:
        """Only what belongs to the session fails, until it is loaded or resumed."""
        self._taken[session] = refused
        self._streams.pop(session, None)
        self._unanswered.fail_session(session, refused)

    async def stop(self) -> None:
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _leave(self, session: str) -> None:
        """Nothing more comes of a session that was closed, unless it is opened again."""
        reading = self._streams.pop(session, None)
        if reading is not None:
            self._left[session] = reading.last_id
            if reading in self._tasks:
                self._tasks[reading].cancel()

    async def _follow(self, session: str | None, reading: Reading) -> None:
        try:
            self._lost(f"a stream was cut: {await reading.run()}", gone=False)
        except StreamRefused as refused:
            if refused.status == TAKEN and session is not None and not reading.last_id:
                self.fail_session(session, refused)
            else:
                self._lost(f"{refused} {words(refused.body)}".strip(), gone=refused.status in DEAD)

    # --- what comes --------------------------------------------------------------------------------

    def _take(self, session: str | None, events: list[Event | Overlong]) -> None:
        frames: list[Received] = []
        for event in events:
            if isinstance(event, Overlong):
                frames.append(event)
                continue
            named = event.fields.get("session")
            if named:
                self.read(unquote(named))
            if event.data:
                self._note(session, event.data)
                if not self._holds(event.fields.get("after", ""), event.data):
                    frames.append(event.data)
        if session is not None and session in self._held:
            frames += self._released(session)
        if frames:
            self._delivery.put(frames)

    def _note(self, session: str | None, frame: bytes) -> None:
        about = outline(frame)
        asked = self._unanswered.came(about, session)
        if asked is not None and asked.session is not None and asked.method in CLOSES:
            self._leave(asked.session)
        if about.is_response and (opened := opened_session(frame)) is not None:
            self.read(opened)

    def _holds(self, after: str, frame: bytes) -> bool:
        """What belongs behind an event of a session's stream is handed over when that was read."""
        number, _, named = after.partition(" ")
        session, position = unquote(named), Position.read(number)
        reading = self._streams.get(session)
        if position is None or reading is None or reading.number >= position.number:
            return False
        self._held.setdefault(session, []).append((position.number, frame))
        return True

    def _released(self, session: str) -> list[bytes]:
        held, read = self._held.pop(session), self._streams[session].number
        still = [(number, frame) for number, frame in held if number > read]
        if still:
            self._held[session] = still
        return [frame for number, frame in held if number <= read]


def words(body: bytes) -> str:
    return body[:200].decode("utf-8", "replace").strip()
