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
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, Self
from weakref import WeakValueDictionary

import msgspec

from antiphon.engine.events import (
    AnyBody,
    Event,
    SessionCreated,
    UnreadableEvent,
    Updated,
    encode_event,
    number,
    readable,
)
from antiphon.engine.session import Session
from antiphon.engine.snapshot import take_dirty
from antiphon.engine.transcript import MessageChunk
from antiphon.errors import EventRefused, LocalError, SessionDamaged, SessionUnknown, StoreError
from antiphon.live.presence import Presence
from antiphon.live.runs import Run, Said, number_texts
from antiphon.live.shared_values import decode_sharing
from antiphon.live.stored_session import Preview, begin_journal, restore
from antiphon.live.tail import Stretch, Tail
from antiphon.schema.updates import SHORT_TEXT, TextChunk
from antiphon.schema.v2.content import TextContent
from antiphon.stores.base import (
    Batch,
    CommitsInPlace,
    RecordPatch,
    Store,
    commits_in_place,
)

logger = logging.getLogger("antiphon.live")

SNAPSHOT_EVERY = 2000
"""After so many events the snapshot in the store is brought up to date."""

SAVE_FLOOR = 1024 * 1024
TELL_EVERY = 1000
"""Milliseconds after which the time in a busy session's record is brought up to date."""
GATHER = 0.001
"""Seconds after a commit in which the chunks of a fast stream are gathered: a commit and a write to each
client cost as much as dozens of chunks. A stream of less than a thousand chunks per second never waits."""
AHEAD = 1024
AHEAD_BYTES = 1024 * 1024
"""How many events, and of what size, a producer may be ahead of the store."""
STREAMED = SHORT_TEXT
"""How many characters a chunk may have to be gathered with others: what is larger is weighed by itself."""

TAIL_SECONDS = 5.0
"""How long the tail of a session that rests is kept."""

OWNER = "a live session"
"""In whose name a session is claimed: one process at a time works in it."""

_encode_lines = msgspec.json.Encoder().encode_lines


def _is_text(chunk: MessageChunk, content: TextContent) -> bool:
    """Whether the text and the id of a chunk can be encoded: a string may hold a lone surrogate."""
    try:
        return (content.text.isascii() or bool(content.text.encode())) and (
            chunk.message_id.isascii() or bool(chunk.message_id.encode())
        )
    except UnicodeEncodeError:
        return False


Clock = Callable[[], int]
"""Milliseconds since 1970."""


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
        self.replays: WeakValueDictionary[int, object] = WeakValueDictionary()
        """The replays that are being sent, by the last event of each (`live.replay`)."""
        self._pending: list[Event] = []
        self._streamed: list[MessageChunk] = []
        """Chunks that come after what is pending, not yet numbered."""
        self._texts: list[TextChunk] = []
        """The same for plain text; one of the two is empty."""
        self._runs: list[Run] = []
        """Those of the pending events that are known to be one message's text."""
        self._unfolded: list[Said] = []
        """Texts that were committed in place and are just being published."""
        self._weight = 0
        """Bytes of what is pending."""
        self._tail = Tail(fold.last_seq)
        self._committed_at = 0.0
        self._forgetting: asyncio.TimerHandle | None = None
        self._gathering: asyncio.TimerHandle | None = None
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
        self._committing = False
        self._in_place = commits_in_place(store)
        self._snapshot = fold.last_seq
        self._since_save = 0
        self._save_size = 0
        self._unsaved = False
        """Whether the snapshot could not be made any more."""
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
        fold = await begin_journal(
            store,
            SessionCreated(
                session_id=session_id,
                cwd=cwd,
                additional_directories=tuple(additional_directories),
                meta=meta or {},
            ),
            history,
            now=clock(),
            owner=OWNER,
        )
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
            fold, snapshot = await restore(store, session_id, preview)
            self = cls(store, fold, clock=clock)
            self._snapshot = snapshot
            return self
        except BaseException:
            with contextlib.suppress(StoreError, SessionUnknown):
                await store.release(session_id, OWNER)
            raise

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
            for timer in (self._forgetting, self._gathering):
                if timer is not None:
                    timer.cancel()
            await self._store.release(self.session_id, OWNER)

    # --- writing -----------------------------------------------------------------------------------

    @property
    def fold(self) -> Session:
        """The session as of everything that was emitted."""
        if self._unfolded:
            self._fold_texts()
        if self._streamed or self._texts:
            self._number_gathered()
        return self._fold

    @property
    def failed(self) -> bool:
        """Whether its store has failed."""
        return self._failure is not None

    def now(self) -> int:
        """The time by the session's clock, in milliseconds since 1970."""
        return self._clock()

    def emit(self, bodies: Iterable[AnyBody]) -> int:
        """Number, fold and queue these facts; the number of the last one. Raises `EventRefused` where one of
        them could not be read back: then none is taken, and those that were emitted before are committed."""
        self._check_open()
        kept = [readable(body) for body in bodies]
        fold = self.fold
        now = self._clock()
        for body in kept:
            self._apply(Event(fold.last_seq + 1, now, body))
            if isinstance(body, Updated):
                self._weight += len(body.raw)
        return fold.last_seq

    def _apply(self, event: Event) -> None:
        try:
            self._fold.apply(event)
        except Exception:
            self._fold.last_seq = event.seq - 1  # it is not in the journal: the next event has its number
            raise
        self._pending.append(event)
        self._emitted.set()

    def stream(self, chunk: MessageChunk) -> None:
        """Emit a chunk, with others: many are numbered, encoded and folded together for less than each alone.

        Nobody can tell, as long as the chunk is not changed afterwards.
        """
        content = chunk.content
        if type(content) is not TextContent or len(content.text) > STREAMED or not _is_text(chunk, content):
            self.emit((Updated.of(chunk),))
            return
        if self._texts:
            self._number_gathered()
        if not self._streamed:
            self._check_open()
            self._emitted.set()
        self._streamed.append(chunk)

    def stream_text(self, chunks: Sequence[TextChunk]) -> None:
        """Emit plain texts that came together; each has its message's id. Where nothing else is under way and
        the store commits in place, they are committed and published when this returns: no task has to wake
        for them. Those that come right behind a commit are gathered for a moment."""
        store, loop = self._in_place, asyncio.get_running_loop()
        rests = not (self._pending or self._streamed or self._texts or self._unfolded or self._committing)
        self._check_open()
        if self._streamed:
            self._number_gathered()
        self._texts += chunks
        if not rests or store is None:
            if self._gathering is None:
                self._emitted.set()
        elif loop.time() < self._committed_at + GATHER:
            if self._gathering is None:
                self._gathering = loop.call_later(GATHER, self._gathered)
        elif not (store.free and self._commit_in_place(store)):
            self._emitted.set()

    def _gathered(self) -> None:
        self._gathering = None
        self._emitted.set()

    def _commit_in_place(self, store: CommitsInPlace) -> bool:
        """Whether all that was emitted is committed now, or has failed to be."""
        if self._save_is_due():
            return False
        events, runs, texts = number_texts(self._texts, after=self._fold.last_seq, at=self._clock())
        told = self._told, self._told_at
        batch, record = self._prepare(events)
        try:
            if not store.append_in_place(self.session_id, batch, record=record):
                self._told, self._told_at = told
                return False
        except Exception as error:
            self._number_gathered()  # the fold runs ahead: who waits for them is told
            self._fail(error)
            return True
        # They are folded once they are on their way, unless somebody looks before.
        self._texts, self._unfolded = [], texts
        self._appended(events, batch, record, runs)
        self._fold_texts()
        return True

    def _fold_texts(self) -> None:
        unfolded, self._unfolded = self._unfolded, []
        for events, texts in unfolded:
            self._fold.fold_text(events, texts)

    def _number_gathered(self) -> None:
        if self._streamed:
            chunks, self._streamed = self._streamed, []
            after, at = self._fold.last_seq, self._clock()
            try:
                events = number(chunks, after=after, at=at)
            except Exception:  # one cannot be encoded: the others are kept
                events = number(self._encodable(chunks), after=after, at=at)
            self._fold.fold(events)
        else:
            after, at = self._fold.last_seq, self._clock()
            events, runs, self._unfolded = number_texts(self._texts, after=after, at=at)
            self._texts = []
            self._runs += runs
            self._fold_texts()
        self._pending += events

    def _encodable(self, chunks: Sequence[MessageChunk]) -> list[MessageChunk]:
        kept = []
        for chunk in chunks:
            try:
                readable(Updated.of(chunk))
            except EventRefused as error:
                logger.error("chunk dropped in session %s: %s", self.session_id, error)
            else:
                kept.append(chunk)
        return kept

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
        self._emitted.set()  # somebody waits for what is being gathered
        try:
            await future
        except asyncio.CancelledError:
            with contextlib.suppress(ValueError):
                self._waiting.remove(waiter)
            raise

    @property
    def ahead(self) -> bool:
        """Whether a producer should wait for `durable`: so much more is emitted than committed."""
        emitted = len(self._pending) + len(self._streamed) + len(self._texts)
        return emitted >= AHEAD or self._weight >= AHEAD_BYTES

    async def _commit(self) -> None:
        while not (self._closing and not (self._pending or self._streamed or self._texts)):
            await self._emitted.wait()
            self._emitted.clear()
            while self._pending or self._streamed or self._texts:
                if self._streamed or self._texts:
                    self._number_gathered()
                events, self._pending, self._weight = self._pending, [], 0
                runs, self._runs = self._runs, []
                # Taken here, where the fold ends with these events; kept once they are in the store.
                parts = self._take_dirty() if self._save_is_due() else None
                self._committing = True
                try:
                    await self._append(events, runs)
                    if parts is not None:
                        await self._save(events[-1].seq, parts)
                except Exception as error:
                    self._fail(error)
                finally:
                    self._committing = False
            if self._failure is not None:
                return
        if self._fold.last_seq > self._snapshot and (parts := self._take_dirty()) is not None:
            with contextlib.suppress(StoreError, SessionUnknown):  # the journal has it all
                await self._save(self._fold.last_seq, parts)

    def _take_dirty(self) -> dict[str, bytes | None] | None:
        """The changed parts of the snapshot; `None` after a failure. Then the snapshot stays where it is, and
        the journal has everything behind it."""
        if self._unsaved:
            return None
        try:
            return take_dirty(self._fold)
        except Exception:
            logger.exception("snapshot failed in session %s; its journal goes on", self.session_id)
            self._unsaved = True
            return None

    async def _append(self, events: list[Event], runs: list[Run]) -> None:
        batch, record = self._prepare(events)
        await self._store.append(self.session_id, batch, record=record)
        self._appended(events, batch, record, runs)

    def _prepare(self, events: list[Event]) -> tuple[Batch, RecordPatch | None]:
        # Many at once cost less than one by one; an event has no newline of its own (`readable`).
        encoded = tuple(_encode_lines(events).split(b"\n")[:-1])
        if len(encoded) != len(events):
            encoded = tuple(map(encode_event, events))
        return Batch(events[0].seq, encoded), self._record(events[-1].at)

    def _appended(
        self, events: list[Event], batch: Batch, record: RecordPatch | None, runs: list[Run]
    ) -> None:
        """These are in the store."""
        if record is not None:
            self.on_told()
        size = sum(map(len, batch.events))
        self._since_save += size
        self._publish(Stretch(events, size=size, known=runs))

    def _publish(self, stretch: Stretch) -> None:
        """To whoever is at the tail, in this very step: waking each of many costs more than writing to it."""
        self._tail.add(stretch)
        loop = asyncio.get_running_loop()
        self._committed_at = loop.time()
        if self._forgetting is None:
            self._forgetting = loop.call_later(TAIL_SECONDS, self._forget)
        for follower in tuple(self._followers):
            follower.committed(stretch)
        if self._waiting:
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
        if self._unsaved or self._fold.last_seq - self._snapshot < SNAPSHOT_EVERY:
            return False
        return self._fold.turn is None or self._since_save >= SAVE_FLOOR + 4 * self._save_size

    def _record(self, now: int) -> RecordPatch | None:
        """What changes in the session's record: its state and title at once, its time now and then."""
        info = self._fold.facts.info
        told = (str(self._fold.state), None if info is None else info.title)
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

    def _fail(self, error: Exception) -> None:
        """What was not committed was never seen by anyone; nothing more is taken in."""
        if not isinstance(error, StoreError | SessionUnknown):  # whatever a store raises, nobody may wait
            logger.error("the store raised what it may not", exc_info=error)
            error = StoreError(str(error))
        self._failure = error
        self._emitted.set()  # nothing is left for the committer to do
        self._pending.clear()
        self._streamed.clear()
        self._texts.clear()
        self._runs.clear()
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
        lines = [line for batch in page.batches for line in batch.after(cursor).events]
        try:
            events = [decode_sharing(line, self._fold) for line in lines]
        except UnreadableEvent as error:
            raise SessionDamaged(
                self.session_id, f"an event after {cursor} cannot be read: {error}"
            ) from error
        return [Stretch(events)] if events else []

    async def after(self, cursor: int) -> list[Event]:
        """The next committed events after a cursor, at least one: from the tail, or from the store."""
        if cursor >= self._tail.last:
            await self.durable(cursor + 1)
        return [event for stretch in await self.stretches(cursor) for event in stretch.events]
