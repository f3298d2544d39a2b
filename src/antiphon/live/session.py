"""LiveSession: a fold, its journal in a store, and the order in which the two move.

`emit` numbers events and folds them at once, so whoever decides next decides on what has happened; chunks may
be gathered by `stream`, and are folded when somebody looks. They reach the store in batches (what was emitted
while the last commit was under way), and nobody else before that: the fold runs ahead of the store, the tail
never does (invariant 1: commit before publish).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, Self

import msgspec

from antiphon.engine.events import (
    AnyBody,
    Event,
    SessionCreated,
    Updated,
    decode_event,
    encode_event,
    number,
)
from antiphon.engine.journal import Cursor
from antiphon.engine.session import Session
from antiphon.engine.snapshot import Restoring, take_dirty
from antiphon.engine.transcript import MessageChunk
from antiphon.errors import LocalError, SessionExists, SessionUnknown, StoreError
from antiphon.live.presence import Presence
from antiphon.live.tail import Stretch, Tail
from antiphon.schema.v2.content import TextContent
from antiphon.stores.base import Batch, RecordPatch, SessionRecord, Store

logger = logging.getLogger("antiphon.live")

SNAPSHOT_EVERY = 2000
"""After so many events the snapshot in the store is brought up to date."""

SAVE_FLOOR = 1024 * 1024
TELL_EVERY = 1000
"""Milliseconds after which the time in a busy session's record is brought up to date."""
AHEAD = 1024
AHEAD_BYTES = 1024 * 1024
"""How many events, and of what size, a producer may be ahead of the store."""
STREAMED = 2048
"""How many characters a chunk may have to be gathered with others: what is larger is weighed by itself."""

TAIL_SECONDS = 5.0
"""How long the tail of a session that rests is kept."""

PREVIEW_BYTES = 256 * 1024
"""How much of a snapshot is read at once."""

OWNER = "a live session"
"""In whose name a session is claimed: one process at a time works in it."""

_encode_lines = msgspec.json.Encoder().encode_lines

Clock = Callable[[], int]
"""Milliseconds since 1970."""

Preview = Callable[[list[bytes]], bool]
"""Takes the next updates of a replay; whether it wants more."""


class Follower(Protocol):
    """Somebody at the tail, who has all that was committed so far."""

    def committed(self, stretch: Stretch) -> None: ...

    def lost(self, error: Exception) -> None: ...


class LiveSession:
    """An async context manager: events are committed while it is open, and all of them when it closes."""

    def __init__(self, store: Store, fold: Session, *, clock: Clock) -> None:
        if fold.created is None:
            raise LocalError("a live session begins with its creation")
        self.session_id = fold.created.session_id
        self._fold = fold
        self._store = store
        self._clock = clock
        self.presence = Presence(clock)
        """Who follows it."""
        self._pending: list[Event] = []
        self._streamed: list[MessageChunk] = []
        """Chunks that come after what is pending, not yet numbered."""
        self._weight = 0
        """Bytes of what is pending."""
        self._tail = Tail(fold.last_seq)
        self._committed_at = 0.0
        self._forgetting: asyncio.TimerHandle | None = None
        self._followers: dict[Follower, None] = {}
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._emitted = asyncio.Event()
        self._closing = False
        self._failure: StoreError | SessionUnknown | None = None
        self.on_failure: Callable[[], None] = lambda: None
        """Called when the store has failed: nothing more happens in this session here."""
        self.on_told: Callable[[], None] = lambda: None
        """Called when something changed in the session's record."""
        self._committer: asyncio.Task[None] | None = None
        self._snapshot = fold.last_seq
        self._since_save = 0
        self._save_size = 0
        self._told: tuple[str, str | None] | None = None
        self._told_at = 0
        self._group = asyncio.TaskGroup()

    @classmethod
    async def create(
        cls,
        store: Store,
        *,
        session_id: str,
        cwd: str,
        clock: Clock,
        additional_directories: Iterable[str] = (),
        meta: dict[str, Any] | None = None,
        history: Iterable[AnyBody] = (),
    ) -> Self:
        """Begin a session; it is in the store when this returns. One that goes on from another begins with
        the `history` of that."""
        created = SessionCreated(
            session_id=session_id,
            cwd=cwd,
            additional_directories=tuple(additional_directories),
            meta=meta or {},
        )
        now = clock()
        events = [Event(seq, now, body) for seq, body in enumerate((created, *history), start=1)]
        fold = Session().fold(events)
        record = SessionRecord(
            session_id=session_id,
            cwd=cwd,
            additional_directories=created.additional_directories,
            title=None if fold.facts.info is None else fold.facts.info.title,
            created_at=now,
            updated_at=now,
        )
        try:
            await store.create(record)
            await store.claim(session_id, OWNER)
            await store.append(session_id, Batch(1, tuple(map(encode_event, events))))
        except SessionExists:
            raise
        except BaseException:
            with contextlib.suppress(StoreError, SessionUnknown):
                await store.delete(session_id)  # without its first event nobody could open it
            raise
        return cls(store, fold, clock=clock)

    @classmethod
    async def open(
        cls, store: Store, session_id: str, *, clock: Clock, preview: Preview | None = None
    ) -> Self:
        """Bring a session back: its snapshot, and every event since. Raises `SessionUnknown`, or
        `SessionClaimed` where another process has it.

        Where the snapshot is the whole of it, `preview` gets the replay while it is read, until it asks for
        no more, or something was at work: a long session is on its way to a client long before it is here.
        """
        await store.claim(session_id, OWNER)
        try:
            return await cls._open(store, session_id, clock, preview)
        except BaseException:
            with contextlib.suppress(StoreError, SessionUnknown):
                await store.release(session_id, OWNER)
            raise

    @classmethod
    async def _open(cls, store: Store, session_id: str, clock: Clock, preview: Preview | None) -> Self:
        record = await store.get(session_id)
        restoring, cursor = Restoring(), 0
        after: str | None = ""
        while after is not None:
            cursor, parts, after = await store.load_parts(session_id, after=after, limit_bytes=PREVIEW_BYTES)
            shown = restoring.add(parts)
            if record is None or cursor != record.last or restoring.at_work:
                preview = None
            if preview is not None and shown and not preview(shown):
                preview = None
        fold = restoring.finish(Cursor(cursor))
        while (page := await store.read(session_id, fold.last_seq)).batches:
            for batch in page.batches:
                fold.fold(map(decode_event, batch.events))
        if fold.created is None:
            await store.delete(session_id)  # whoever began it died before it had a first event
            raise SessionUnknown(session_id)
        self = cls(store, fold, clock=clock)
        self._snapshot = cursor
        return self

    # --- life --------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._committer = self._group.create_task(self._commit())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        self._emitted.set()
        try:
            await self._group.__aexit__(None, None, None)
        finally:
            if self._forgetting is not None:
                self._forgetting.cancel()
            await self._store.release(self.session_id, OWNER)

    # --- writing -----------------------------------------------------------------------------------

    @property
    def fold(self) -> Session:
        """The session as of everything that was emitted."""
        if self._streamed:
            self._number_streamed()
        return self._fold

    @property
    def failed(self) -> bool:
        """Whether its store has failed."""
        return self._failure is not None

    def now(self) -> int:
        """The time by the session's clock, in milliseconds since 1970."""
        return self._clock()

    def emit(self, bodies: Iterable[AnyBody]) -> int:
        """Number, fold and queue these facts; the number of the last one."""
        self._check_open()
        fold = self.fold
        now = self._clock()
        for body in bodies:
            event = Event(fold.last_seq + 1, now, body)
            fold.apply(event)
            self._pending.append(event)
            if isinstance(body, Updated):
                self._weight += len(body.raw)
        if self._pending:
            self._emitted.set()
        return fold.last_seq

    def stream(self, chunk: MessageChunk) -> None:
        """Emit a chunk, with others: many are numbered, encoded and folded together for less than each alone.

        Nobody can tell, as long as the chunk is not changed afterwards.
        """
        content = chunk.content
        if type(content) is not TextContent or len(content.text) > STREAMED:
            self.emit((Updated.of(chunk),))
            return
        if not self._streamed:
            self._check_open()
            self._emitted.set()
        self._streamed.append(chunk)

    def _number_streamed(self) -> None:
        chunks, self._streamed = self._streamed, []
        events = number(chunks, after=self._fold.last_seq, at=self._clock())
        self._fold.fold(events)
        self._pending += events

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closing:
            raise LocalError("this session is no longer live here")

    def is_gathered(self, seq: int) -> bool:
        """Whether an event is in the batch that is committed next, with what is emitted now."""
        return bool(self._pending) and self._pending[0].seq <= seq

    async def durable(self, seq: int | None = None) -> None:
        """Wait until everything up to `seq`, or everything emitted so far, is in the store."""
        wanted = self.fold.last_seq if seq is None else seq
        if wanted <= self._tail.last:
            return
        if self._failure is not None:
            raise self._failure
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (wanted, future)
        self._waiting.append(waiter)
        try:
            await future
        except asyncio.CancelledError:
            with contextlib.suppress(ValueError):
                self._waiting.remove(waiter)
            raise

    @property
    def ahead(self) -> bool:
        """Whether a producer should wait for `durable`: so much more is emitted than committed."""
        return len(self._pending) + len(self._streamed) >= AHEAD or self._weight >= AHEAD_BYTES

    async def _commit(self) -> None:
        while not (self._closing and not self._pending and not self._streamed):
            await self._emitted.wait()
            self._emitted.clear()
            while self._pending or self._streamed:
                if self._streamed:
                    self._number_streamed()
                events, self._pending, self._weight = self._pending, [], 0
                # Taken here, where the fold ends with these events; kept once they are in the store.
                parts = take_dirty(self._fold) if self._save_is_due() else None
                try:
                    await self._append(events)
                    if parts is not None:
                        await self._save(events[-1].seq, parts)
                except (StoreError, SessionUnknown) as error:
                    self._fail(error)
                    return
                except Exception as error:  # a store of another hand: whatever it raises, nobody may wait
                    logger.exception("the store raised what it may not")
                    self._fail(StoreError(str(error)))
                    return
        if self._fold.last_seq > self._snapshot:
            with contextlib.suppress(StoreError, SessionUnknown):  # the journal has it all
                await self._save(self._fold.last_seq, take_dirty(self._fold))

    async def _append(self, events: list[Event]) -> None:
        # Many at once cost less than one by one; an event has no newline of its own.
        encoded = tuple(_encode_lines(events).split(b"\n")[:-1])
        record = self._record(events[-1].at)
        await self._store.append(self.session_id, Batch(events[0].seq, encoded), record=record)
        if record is not None:
            self.on_told()
        size = sum(map(len, encoded))
        self._since_save += size
        self._publish(Stretch(events, size=size))

    def _publish(self, stretch: Stretch) -> None:
        """To whoever is at the tail, in this very step: waking each of many costs more than writing to it."""
        self._tail.add(stretch)
        loop = asyncio.get_running_loop()
        self._committed_at = loop.time()
        if self._forgetting is None:
            self._forgetting = loop.call_later(TAIL_SECONDS, self._forget)
        for follower in tuple(self._followers):
            follower.committed(stretch)
        self._wake(stretch.last)

    def _forget(self) -> None:
        """A session that rests, with clients or without, takes no room for what they all have."""
        loop = asyncio.get_running_loop()
        rests_at = self._committed_at + TAIL_SECONDS
        self._forgetting = None
        if rests_at > loop.time():
            self._forgetting = loop.call_at(rests_at, self._forget)
        else:
            self._tail.forget()

    def _save_is_due(self) -> bool:
        """A message that is being streamed is written whole with every snapshot, so in a turn the next one
        waits until much more has come than the last one cost: it stays a fraction, however long it gets."""
        if self._fold.last_seq - self._snapshot < SNAPSHOT_EVERY:
            return False
        return self._fold.turn is None or self._since_save >= SAVE_FLOOR + 4 * self._save_size

    def _record(self, now: int) -> RecordPatch | None:
        """What changes in the session's record: its state and title at once, its time now and then."""
        info = self.fold.facts.info
        told = (str(self.fold.state), None if info is None else info.title)
        if told == self._told and now - self._told_at < TELL_EVERY:
            return None
        self._told, self._told_at = told, now
        return RecordPatch(updated_at=now, state=told[0], title=told[1])

    async def _save(self, upto: int, parts: dict[str, bytes | None]) -> None:
        """Bring the snapshot up to `upto`, which is committed."""
        await self._store.save_parts(self.session_id, upto, parts)
        self._snapshot, self._since_save = upto, 0
        self._save_size = sum(len(part) for part in parts.values() if part is not None)

    def _wake(self, last: int) -> None:
        still: deque[tuple[int, asyncio.Future[None]]] = deque()
        for seq, future in self._waiting:
            if seq > last:
                still.append((seq, future))
            elif not future.done():
                future.set_result(None)
        self._waiting = still

    def _fail(self, error: StoreError | SessionUnknown) -> None:
        """What was not committed was never seen by anyone; nothing more is taken in."""
        self._failure = error
        self._pending.clear()
        self._streamed.clear()
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()
        for follower in tuple(self._followers):
            follower.lost(error)
        logger.error("session %s cannot be kept any more: %s", self.session_id, error)
        self.on_failure()

    # --- reading -----------------------------------------------------------------------------------

    @property
    def committed(self) -> int:
        """The number of the last event that is in the store."""
        return self._tail.last

    @contextlib.contextmanager
    def accompanied_by(self, follower: Follower) -> Iterator[None]:
        """Inside the block, a follower that has everything until now is handed each commit as it is made.
        It leaves when it cannot take more."""
        if self._failure is not None:
            raise self._failure
        self._followers[follower] = None
        try:
            yield
        finally:
            self._followers.pop(follower, None)

    async def stretches(self, cursor: int) -> list[Stretch]:
        """What was committed after a cursor: all of it from the tail, or the next page from the store."""
        if self._tail.reaches(cursor):
            return self._tail.after(cursor)
        page = await self._store.read(self.session_id, cursor)
        events = [decode_event(line) for batch in page.batches for line in batch.after(cursor).events]
        return [Stretch(events)] if events else []

    async def after(self, cursor: int) -> list[Event]:
        """The next committed events after a cursor, at least one: from the tail, or from the store."""
        if cursor >= self._tail.last:
            await self.durable(cursor + 1)
        return [event for stretch in await self.stretches(cursor) for event in stretch.events]
