"""ClientStreams: the streams that a client reads, and the order in which their frames are handed over.

The client reads the connection's stream from `initialize` on. It opens the stream of a session before it
posts a frame of that session (HTTP-12), or when a result names the session.
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
from antiphon.jsonrpc.oversized import OversizedFrame
from antiphon.jsonrpc.sse import Event
from antiphon.remote.frames import CLOSES, Outline, key_of, opened_session, outline
from antiphon.transports.base import Delivery
from antiphon.transports.http.event_source import DEAD, TAKEN, EventSource, StreamRefused
from antiphon.transports.http.event_stream import Position

BODY_SHOWN = 8 * 1024


class Pending(Struct, frozen=True):
    """A request that this client sent."""

    id: Any
    method: str
    session: str | None


class PendingRequests:
    def __init__(self, fail: Callable[[bytes], None]) -> None:
        """`fail` gets error responses to requests that the server will not answer."""
        self._fail = fail
        self._pending: dict[tuple[str, Any], Pending] = {}
        self._asked: dict[tuple[str, Any], str] = {}
        """Sessions of the agent's requests, by the ids of the requests (HTTP-09)."""

    def sent(self, about: Outline) -> str | None:
        """Note a frame that is about to be sent. Return the session that it belongs to."""
        if about.is_response:
            return self._asked.pop(key_of(about.id), None)
        if about.id is not UNSET:
            self._pending[key_of(about.id)] = Pending(about.id, about.method or "", about.session)
        return about.session

    def received(self, about: Outline, session: str | None) -> Pending | None:
        """Note a frame from the stream of a session, or of none. Return the request that it answers."""
        if about.is_response:
            return self._pending.pop(key_of(about.id), None)
        if about.id is not UNSET and session is not None:
            self._asked[key_of(about.id)] = session
        return None

    # --- failures (HTTP-18) ------------------------------------------------------------------------

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
    """Return the JSON-RPC error in the body of a refusal, if it has one."""
    try:
        return msgspec.json.decode(body, type=_Refusal).error
    except UNREADABLE:
        return None


def _shown(body: bytes) -> Any:
    """Return the first part of a body, as JSON if it is."""
    try:
        return msgspec.json.decode(body[:BODY_SHOWN])
    except UNREADABLE:
        return body[:BODY_SHOWN].decode("utf-8", "ignore")


Take = Callable[[list[Event | OversizedFrame]], None]


class Lost(Protocol):
    """Called when the connection is lost. `gone`: whether the server has dropped it too."""

    def __call__(self, reason: str, *, gone: bool) -> None: ...


class ClientStreams:
    def __init__(
        self,
        make_source: Callable[[str | None, Take], EventSource],
        requests: PendingRequests,
        delivery: Delivery,
        *,
        lost: Lost,
    ) -> None:
        """`make_source` makes the reader of the stream of a session, or of the connection."""
        self._make_source = make_source
        self._requests = requests
        self._delivery = delivery
        self._lost = lost
        self._streams: dict[str | None, EventSource] = {}
        self._tasks: dict[EventSource, asyncio.Task[None]] = {}
        self._taken: dict[str, StreamRefused] = {}
        """Sessions whose stream another client reads, until they are opened again (HTTP-18)."""
        self._closed: dict[str | None, str] = {}
        """The last event id of each closed session."""
        self._waiting: dict[str, list[tuple[int, bytes]]] = {}
        """Responses that wait until an event of their session was read, with its number."""

    # --- open streams ------------------------------------------------------------------------------

    def read(self, session: str | None) -> None:
        """Read a stream, unless it is being read already."""
        if session in self._streams:
            return
        reading = self._streams[session] = self._make_source(session, partial(self._take, session))
        reading.last_id = self._closed.pop(session, "")
        task = self._tasks[reading] = asyncio.get_running_loop().create_task(self._follow(session, reading))
        task.add_done_callback(lambda _: self._tasks.pop(reading, None))

    async def opened(self, session: str, *, anew: bool) -> None:
        """Wait until the stream of a session is open. `anew`: the session is loaded or resumed. Raises
        `StreamRefused`."""
        if anew:
            self._taken.pop(session, None)
        if session in self._taken:
            raise self._taken[session]
        self.read(session)
        await asyncio.shield(self._streams[session].opened)

    def fail_session(self, session: str, refused: StreamRefused) -> None:
        """Fail the requests of a session, until it is loaded or resumed."""
        self._taken[session] = refused
        self._streams.pop(session, None)
        self._requests.fail_session(session, refused)

    async def stop(self) -> None:
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _close(self, session: str) -> None:
        """Stop reading the stream of a closed session."""
        reading = self._streams.pop(session, None)
        if reading is not None:
            self._closed[session] = reading.last_id
            if reading in self._tasks:
                self._tasks[reading].cancel()

    async def _follow(self, session: str | None, reading: EventSource) -> None:
        try:
            self._lost(f"a stream was lost: {await reading.run()}", gone=False)
        except StreamRefused as refused:
            if refused.status == TAKEN and session is not None and not reading.last_id:
                self.fail_session(session, refused)
            else:
                self._lost(f"{refused} {excerpt(refused.body)}".strip(), gone=refused.status in DEAD)

    # --- received events ---------------------------------------------------------------------------

    def _take(self, session: str | None, events: list[Event | OversizedFrame]) -> None:
        frames: list[Received] = []
        for event in events:
            if isinstance(event, OversizedFrame):
                frames.append(event)
                continue
            named = event.fields.get("session")
            if named:
                self.read(unquote(named))
            if event.data:
                self._note(session, event.data)
                if not self._must_wait(event.fields.get("after", ""), event.data):
                    frames.append(event.data)
        if session is not None and session in self._waiting:
            frames += self._take_ready(session)
        if frames:
            self._delivery.put(frames)

    def _note(self, session: str | None, frame: bytes) -> None:
        about = outline(frame)
        asked = self._requests.received(about, session)
        if asked is not None and asked.session is not None and asked.method in CLOSES:
            self._close(asked.session)
        if about.is_response and (opened := opened_session(frame)) is not None:
            self.read(opened)

    def _must_wait(self, after: str, frame: bytes) -> bool:
        """Keep a frame that belongs after an event of a session's stream, until that event was read."""
        number, _, named = after.partition(" ")
        session, position = unquote(named), Position.read(number)
        reading = self._streams.get(session)
        if position is None or reading is None or reading.number >= position.number:
            return False
        self._waiting.setdefault(session, []).append((position.number, frame))
        return True

    def _take_ready(self, session: str) -> list[bytes]:
        waiting, read = self._waiting.pop(session), self._streams[session].number
        later = [(number, frame) for number, frame in waiting if number > read]
        if later:
            self._waiting[session] = later
        return [frame for number, frame in waiting if number <= read]


def excerpt(body: bytes) -> str:
    """Return the beginning of a response body, for an error message."""
    return body[:200].decode("utf-8", "replace").strip()
