"""LiveJournal: the committed events of a session, as its attachments follow them.

The last events are in memory (the tail), older ones are read from the store.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

from msgspec import structs

from antiphon.engine.events import Event, UnreadableEvent, Updated, decode_event
from antiphon.engine.session import Session
from antiphon.engine.tools import ToolCall
from antiphon.errors import SessionDamaged
from antiphon.live.tail import Stretch, Tail
from antiphon.schema import v2
from antiphon.schema.repair import Malformed
from antiphon.stores.base import Store

TAIL_SECONDS = 5.0
"""How long the tail of a session without new events is kept."""

LARGE = 16 * 1024
"""Bytes of an event from which on its values are shared with the fold."""


class JournalFollower(Protocol):
    """An attachment at the tail, which has everything that was committed so far."""

    def committed(self, stretch: Stretch) -> None: ...

    def lost(self, error: Exception) -> None: ...


class LiveJournal:
    """One journal. Events are published once the store has them, never before (invariant 1)."""

    def __init__(self, store: Store, fold: Session, session_id: str) -> None:
        self._store = store
        self._fold = fold
        self._session_id = session_id
        self._tail = Tail(fold.last_seq)
        self._followers: dict[JournalFollower, None] = {}
        self._forget_timer: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None
        self.published_at = 0.0
        """When the last events were published, by the clock of the loop."""

    @property
    def last(self) -> int:
        """The number of the last event that is in the store."""
        return self._tail.last

    def publish(self, stretch: Stretch) -> None:
        """Hand committed events to the followers, in this step: waking many tasks costs more than writing."""
        self._tail.add(stretch)
        loop = asyncio.get_running_loop()
        self.published_at = loop.time()
        if self._forget_timer is None:
            self._forget_timer = loop.call_later(TAIL_SECONDS, self._forget)
        for follower in tuple(self._followers):
            follower.committed(stretch)

    def fail(self, error: Exception) -> None:
        """Publish nothing more, because the store has failed."""
        self._failure = error
        for follower in tuple(self._followers):
            follower.lost(error)

    @contextlib.contextmanager
    def followed_by(self, follower: JournalFollower) -> Iterator[None]:
        """Inside the block, hand each commit to a follower that has all earlier events."""
        if self._failure is not None:
            raise self._failure
        self._followers[follower] = None
        try:
            yield
        finally:
            self._followers.pop(follower, None)

    async def stretches(self, cursor: int) -> list[Stretch]:
        """Return the events after a cursor: all of them from the tail, or the next page of the store."""
        if self._tail.reaches(cursor):
            return self._tail.after(cursor)
        page = await self._store.read(self._session_id, cursor)
        lines = [line for batch in page.batches for line in batch.after(cursor).events]
        try:
            events = [_decode(line, self._fold) for line in lines]
        except UnreadableEvent as error:
            raise SessionDamaged(
                self._session_id, f"an event after {cursor} cannot be read: {error}"
            ) from error
        return [Stretch(events)] if events else []

    def close(self) -> None:
        if self._forget_timer is not None:
            self._forget_timer.cancel()

    def _forget(self) -> None:
        """Drop the tail of a session without new events: its clients have them all."""
        loop = asyncio.get_running_loop()
        due = self.published_at + TAIL_SECONDS
        self._forget_timer = None
        if due > loop.time():
            self._forget_timer = loop.call_at(due, self._forget)
        else:
            self._tail.forget()


# A v1 client is sent the whole of a tool call with each change, so its writer keeps the call. The large
# values of a journal that is read anew for each client are those of the fold: otherwise each client had its
# own copy.


def _decode(line: bytes, fold: Session) -> Event:
    """Decode an event. Large values of a tool call that `fold` has too are those of the fold."""
    event = decode_event(line)
    if len(line) >= LARGE and isinstance(event.body, Updated):
        try:
            update: Any = event.body.update
        except Malformed:
            return event
        if isinstance(update, v2.SessionToolCallUpdate | v2.ToolCallContentChunk):
            call = fold.tools.get(update.tool_call_id)
            if call is not None:
                event.body.__dict__["update"] = _shared(update, call)
    return event


def _shared(update: Any, call: ToolCall) -> Any:
    content = update.content
    if isinstance(update, v2.ToolCallContentChunk):
        return structs.replace(update, content=_same(content, call.content))
    if isinstance(content, list):
        content = [
            held if held == item else item
            for item, held in zip(content, [*call.content, *content[len(call.content) :]], strict=False)
        ]
    return structs.replace(
        update,
        content=content,
        raw_input=_same(update.raw_input, [call.raw_input]),
        raw_output=_same(update.raw_output, [call.raw_output]),
    )


def _same(value: Any, held: list[Any]) -> Any:
    """Return the held value that equals `value`, or `value` itself."""
    return next((one for one in held if one == value), value)
