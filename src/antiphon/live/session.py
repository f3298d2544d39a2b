"""LiveSession: a session that is worked in, and the order in which its fold and its journal move.

`emit` numbers events and folds them at once, so that the next decision knows them. `stream_text` gathers
plain texts, which are folded when the fold is read. A task commits what was emitted while the last commit was
in progress, in one batch. So the fold is ahead of the store, and the published journal never is (invariant 1:
commit before publish).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self
from weakref import WeakValueDictionary

import msgspec

from antiphon.engine.events import (
    AnyBody,
    Event,
    QuestionClosed,
    QuestionOpened,
    SessionCreated,
    Updated,
    encode_event,
    readable,
)
from antiphon.engine.fold import is_state
from antiphon.engine.session import Session
from antiphon.engine.transcript import MessageChunk
from antiphon.errors import LocalError, SessionUnknown, StoreError
from antiphon.live.event_waiters import EventWaiters
from antiphon.live.journal import LiveJournal
from antiphon.live.presence import Presence
from antiphon.live.runs import MessageTexts, Run, as_text, number_texts
from antiphon.live.snapshot_saver import SnapshotSaver
from antiphon.live.stored_session import Preview, begin_journal, restore
from antiphon.live.tail import Stretch
from antiphon.schema.repair import Malformed
from antiphon.schema.updates import TextChunk
from antiphon.stores.base import Batch, CommitsInPlace, RecordPatch, Store, commits_in_place
from antiphon.transcripts.titles import title_of_first_prompt

logger = logging.getLogger("antiphon.live")

RECORD_EVERY = 1000
"""Milliseconds after which the time in a busy session's record is renewed."""
GATHER = 0.001
"""Seconds after a commit in which the chunks of a fast stream are gathered: a commit and a write to each
client cost as much as dozens of chunks. A stream of less than a thousand chunks per second never waits."""
AHEAD = 1024
AHEAD_BYTES = 1024 * 1024
"""How many events, and of what size, a producer may be ahead of the store."""

OWNER = "a live session"
"""The owner of the claim on a session: one process at a time works in it."""

_encode_lines = msgspec.json.Encoder().encode_lines

Clock = Callable[[], int]
"""Returns milliseconds since 1970."""


class LiveSession:
    """An async context manager: events are committed while it is open, and all of them when it closes."""

    def __init__(self, store: Store, fold: Session, *, clock: Clock, snapshot: int | None = None) -> None:
        """`snapshot`: the last event of the snapshot in the store, if that is not the last of the fold."""
        if fold.created is None:
            raise LocalError("the fold of a live session needs its first event, session_created; it has none")
        self.session_id = fold.created.session_id
        self._fold = fold
        self._store = store
        self._clock = clock
        self.journal = LiveJournal(store, fold, self.session_id)
        """The committed events, for attachments."""
        self.presence = Presence(clock, on_change=lambda: self._on_change())
        """Clients that are attached now."""
        self.replays: WeakValueDictionary[int, object] = WeakValueDictionary()
        """The replays that are being sent, by the last event of each (`live.replay`)."""
        self._pending: list[Event] = []
        self._texts: list[TextChunk] = []
        """Plain texts that follow the pending events and have no numbers yet."""
        self._runs: list[Run] = []
        """The pending events that are known to be the text of one message."""
        self._unfolded: list[MessageTexts] = []
        """Texts that were committed in place and are being published."""
        self._weight = 0
        """Bytes of the pending events."""
        self._gather_timer: asyncio.TimerHandle | None = None
        self._durable_waiters = EventWaiters()
        self._emitted = asyncio.Event()
        self._closing = False
        self._failure: StoreError | SessionUnknown | None = None
        self._on_failure: Callable[[], None] = lambda: None
        self._on_change: Callable[[], None] = lambda: None
        self._on_news: Callable[[Sequence[Event]], None] | None = None
        self._news: list[Event] = []
        """Pending events for `_on_news`."""
        self._committing = False
        self._in_place = commits_in_place(store)
        self._snapshots = SnapshotSaver(
            store, self.session_id, fold.last_seq if snapshot is None else snapshot
        )
        self._named_by_prompt = False
        self._first_prompt: str | None = None
        self._recorded: tuple[str, str | None] | None = None
        self._recorded_at = 0
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
        """Begin a session; it is in the store when this returns. `history`: the events of the session that it
        continues."""
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
        """Restore a session: its snapshot, and every event since. Raises `SessionUnknown`, or
        `SessionClaimed` if another process has it.

        If the snapshot is all of the session and nothing in it is in progress, `preview` gets the replay
        while it is read, until it asks for no more. So a client gets a long session long before it is
        restored.
        """
        await store.claim(session_id, OWNER)
        try:
            fold, snapshot = await restore(store, session_id, preview)
            return cls(store, fold, clock=clock, snapshot=snapshot)
        except BaseException:
            with contextlib.suppress(StoreError, SessionUnknown):
                await store.release(session_id, OWNER)
            raise

    def observe(self, *, changed: Callable[[], None], failed: Callable[[], None]) -> None:
        """Call `changed` when the session's record or its clients change, and `failed` when the store has
        failed: then nothing more happens in this session here."""
        self._on_change, self._on_failure = changed, failed

    def name_by_prompt(self) -> None:
        """Record the session under the beginning of its first prompt while it has no title. The journal and
        what clients are sent do not change."""
        self._named_by_prompt = True

    def watch(self, committed: Callable[[Sequence[Event]], None]) -> None:
        """Call `committed` with the events that open or end a question or report a state, once the store has
        them. It is called between two commits of the session: it must not raise, and must return at once."""
        self._on_news = committed

    # --- life --------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._group.create_task(self._commit())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        self._emitted.set()
        try:
            await self._group.__aexit__(None, None, None)
        finally:
            self.journal.close()
            self.presence.close()
            if self._gather_timer is not None:
                self._gather_timer.cancel()
            await self._store.release(self.session_id, OWNER)

    # --- emitting ----------------------------------------------------------------------------------

    @property
    def fold(self) -> Session:
        """The session as of everything that was emitted."""
        if self._unfolded:
            self._fold_texts()
        if self._texts:
            self._number_texts()
        return self._fold

    @property
    def failed(self) -> bool:
        return self._failure is not None

    def now(self) -> int:
        """Return the time by the session's clock, in milliseconds since 1970."""
        return self._clock()

    def emit(self, bodies: Iterable[AnyBody]) -> int:
        """Number, fold and queue events; return the number of the last one. Raises `EventRefused` if one of
        them could not be read back: then none of them is emitted."""
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
        if self._on_news is not None and _is_news(event.body):
            self._news.append(event)
        self._emitted.set()

    def stream(self, chunk: MessageChunk) -> None:
        """Emit a chunk. Short plain text of an agent is gathered with other texts (`stream_text`)."""
        text = as_text(chunk)
        if text is None:
            self.emit((Updated.of(chunk),))
        else:
            self.stream_text((text,))

    def stream_text(self, chunks: Sequence[TextChunk]) -> None:
        """Emit plain texts that came together; each has the id of its message.

        If nothing else is in progress and the store commits in place, they are committed and published when
        this returns: no task has to wake for them. Texts right after a commit are gathered for a moment.
        """
        if self._texts:
            self._texts += chunks
            return
        store, loop = self._in_place, asyncio.get_running_loop()
        at_rest = not (self._pending or self._unfolded or self._committing)
        self._check_open()
        self._texts += chunks
        if not at_rest or store is None:
            if self._gather_timer is None:
                self._emitted.set()
        elif loop.time() < self.journal.published_at + GATHER:
            if self._gather_timer is None:
                self._gather_timer = loop.call_later(GATHER, self._end_gathering)
        elif not (store.free and self._commit_in_place(store)):
            self._emitted.set()

    def _end_gathering(self) -> None:
        self._gather_timer = None
        self._emitted.set()

    def _fold_texts(self) -> None:
        unfolded, self._unfolded = self._unfolded, []
        for events, texts in unfolded:
            self._fold.fold_text(events, texts)

    def _number_texts(self) -> None:
        after, at = self._fold.last_seq, self._clock()
        events, runs, self._unfolded = number_texts(self._texts, after=after, at=at)
        self._texts = []
        self._runs += runs
        self._fold_texts()
        self._pending += events

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closing:
            raise LocalError(f"session {self.session_id} is closed here; nothing more can be emitted")

    # --- committing --------------------------------------------------------------------------------

    def is_gathered(self, seq: int) -> bool:
        """Whether an event is in the batch that is committed next, with what is emitted now."""
        return bool(self._pending) and self._pending[0].seq <= seq

    @property
    def ahead(self) -> bool:
        """Whether a producer should wait for `durable`: so much more is emitted than committed."""
        return len(self._pending) + len(self._texts) >= AHEAD or self._weight >= AHEAD_BYTES

    async def durable(self, seq: int | None = None) -> None:
        """Wait until everything up to `seq`, or everything emitted so far, is in the store."""
        wanted = self.fold.last_seq if seq is None else seq
        if wanted <= self.journal.last:
            return
        if self._failure is not None:
            raise self._failure
        self._emitted.set()  # what is being gathered is waited for: commit it now
        await self._durable_waiters.wait(wanted)

    async def after(self, cursor: int) -> list[Event]:
        """Wait for committed events after a cursor, and return the next ones, at least one."""
        if cursor >= self.journal.last:
            await self.durable(cursor + 1)
        return [event for stretch in await self.journal.stretches(cursor) for event in stretch.events]

    async def _commit(self) -> None:
        while not (self._closing and not (self._pending or self._texts)):
            await self._emitted.wait()
            self._emitted.clear()
            while self._pending or self._texts:
                if self._texts:
                    self._number_texts()
                events, self._pending, self._weight = self._pending, [], 0
                runs, self._runs = self._runs, []
                # Taken here, where the fold ends with these events; saved once they are in the store.
                due = self._snapshots.is_due(self._fold)
                parts = self._snapshots.take(self._fold) if due else None
                self._committing = True
                try:
                    await self._append(events, runs)
                    if parts is not None:
                        await self._snapshots.save(events[-1].seq, parts)
                except Exception as error:
                    self._fail(error)
                finally:
                    self._committing = False
            if self._failure is not None:
                return
        if self._fold.last_seq > self._snapshots.upto:
            parts = self._snapshots.take(self._fold)
            if parts is not None:
                with contextlib.suppress(StoreError, SessionUnknown):  # the journal has it all
                    await self._snapshots.save(self._fold.last_seq, parts)

    def _commit_in_place(self, store: CommitsInPlace) -> bool:
        """Commit everything that was emitted now; return `False` if that has to wait."""
        if self._snapshots.is_due(self._fold):
            return False
        events, runs, texts = number_texts(self._texts, after=self._fold.last_seq, at=self._clock())
        recorded = self._recorded, self._recorded_at
        batch, record = self._prepare(events)
        try:
            if not store.append_in_place(self.session_id, batch, record=record):
                self._recorded, self._recorded_at = recorded
                return False
        except Exception as error:
            self._number_texts()  # the fold has them, and those who wait for them get the error
            self._fail(error)
            return True
        # They are folded once they are published, unless the fold is read before.
        self._texts, self._unfolded = [], texts
        self._publish(events, batch, record, runs)
        self._fold_texts()
        return True

    async def _append(self, events: list[Event], runs: list[Run]) -> None:
        batch, record = self._prepare(events)
        await self._store.append(self.session_id, batch, record=record)
        self._publish(events, batch, record, runs)

    def _prepare(self, events: list[Event]) -> tuple[Batch, RecordPatch | None]:
        # Many at once cost less than one by one. No event has a newline in it (`readable`).
        encoded = tuple(_encode_lines(events).split(b"\n")[:-1])
        if len(encoded) != len(events):
            encoded = tuple(map(encode_event, events))
        return Batch(events[0].seq, encoded), self._record(events[-1].at)

    def _record(self, now: int) -> RecordPatch | None:
        """Return the changes of the session's record: state and title at once, the time now and then."""
        info = self._fold.facts.info
        title = None if info is None else info.title
        if self._named_by_prompt and not title:
            title = self._first_prompt = self._first_prompt or title_of_first_prompt(self._fold)
        recorded = (str(self._fold.state), title)
        if recorded == self._recorded and now - self._recorded_at < RECORD_EVERY:
            return None
        self._recorded, self._recorded_at = recorded, now
        return RecordPatch(updated_at=now, state=recorded[0], title=recorded[1])

    def _publish(
        self, events: list[Event], batch: Batch, record: RecordPatch | None, runs: list[Run]
    ) -> None:
        """Hand out events that are in the store now."""
        if record is not None:
            self._on_change()
        size = sum(map(len, batch.events))
        self._snapshots.bytes_since += size
        self.journal.publish(Stretch(events, size=size, known=runs))
        if self._durable_waiters.waiting:
            self._durable_waiters.wake(events[-1].seq)
        if self._news and self._on_news is not None:
            last = events[-1].seq
            committed = [event for event in self._news if event.seq <= last]
            self._news = self._news[len(committed) :]
            if committed:
                self._on_news(committed)

    def lose(self) -> None:
        """Take in nothing more: another process has taken the session over."""
        self._fail(StoreError(f"session {self.session_id} was taken over by another process"))

    def _fail(self, error: Exception) -> None:
        """Take in nothing more. No client has seen what was not committed."""
        if self._failure is not None:
            return
        if not isinstance(error, StoreError | SessionUnknown):
            logger.error(
                "store raised an unexpected exception; closing session %s", self.session_id, exc_info=error
            )
            error = StoreError(str(error))
        self._failure = error
        self._emitted.set()  # nothing is left for the committer to do
        self._pending.clear()
        self._texts.clear()
        self._runs.clear()
        self._news.clear()
        self._durable_waiters.fail(error)
        self.journal.fail(error)
        logger.error("store failed: session %s can no longer be written: %s", self.session_id, error)
        self._on_failure()


def _is_news(body: AnyBody) -> bool:
    if isinstance(body, Updated):
        try:
            return is_state(body.update)
        except Malformed:  # kept as the agent wrote it
            return False
    return isinstance(body, QuestionOpened | QuestionClosed)
