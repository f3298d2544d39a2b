"""SessionJournal: the journal and the record of one session, as messages of one subject.

A message is one batch. Every write names the message that it follows, so a writer that missed one is refused
by the server. Claiming a session writes a message too: its previous owner cannot append after it.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from msgspec import structs

from antiphon.errors import SessionUnknown, StaleWriter, StoreBusy, StoreCorrupt
from antiphon.stores.base import Batch, Page, RecordPatch, SessionRecord, joined_events
from antiphon.stores.jetstream.engine import Engine, Message, Unconfirmed, WrongSequence
from antiphon.stores.jetstream.follower import Follower
from antiphon.stores.jetstream.layout import PIECE_BYTES
from antiphon.stores.jetstream.messages import JournalHead, join, new_nonce, split
from antiphon.stores.jetstream.pieces import read_pieces, write_pieces

MOST_MARKS = 1024
"""Positions that a journal remembers; beyond that every second one is forgotten."""
LINGER = 30.0
"""Seconds for which a journal is watched that no call waits for."""
NEAR = 256
"""Messages or events that are read through rather than searched."""
MOST_RECEIVED = 1024 * 1024
"""Bytes of the batches that a watched journal keeps until they are read."""


class JournalMissing(Exception):
    """The subject has no message: the session was deleted, or the stream lost it."""


class Tip(NamedTuple):
    """The last message of a journal."""

    seq: int
    last: int
    record: SessionRecord
    record_at: int
    claim: str
    nonce: str
    gone: bool


class SessionJournal:
    def __init__(
        self,
        engine: Engine,
        session_id: str,
        key: str,
        *,
        grew: Callable[[str, int], None],
        deleted: Callable[[str], None],
        awaited: Callable[[], bool],
    ) -> None:
        """`grew` is called with the number of the last event whenever the journal grows, `deleted` when
        another store deletes the session. `awaited`: whether a call waits for the journal to grow."""
        self.session_id = session_id
        self.key = key
        self._claim = ""
        """The claim of this store, until it is released; empty if it has none."""
        self.is_held = False
        """Whether this store holds the claim, as far as it knows: then only this store writes."""
        self._engine = engine
        self._stream, self._subject = engine.layout.place("journal", key)
        self._grew = grew
        self._deleted = deleted
        self._awaited = awaited
        self._lock = asyncio.Lock()
        self._tip: Tip | None = None
        self._marks: list[tuple[int, int]] = []
        """First events of some batches with the numbers of their messages, in order."""
        self._follower: Follower | None = None
        self._followed_at = 0.0
        self._received: deque[tuple[JournalHead, bytes]] = deque()
        """The last batches that the follower has received, without gaps. A call that waited for them reads
        them from here."""

    @property
    def is_at_rest(self) -> bool:
        """Whether this store neither writes the journal nor watches it."""
        return not self._claim and not self._lock.locked() and self._follower is None

    # --- the end of the journal --------------------------------------------------------------------

    async def tip(self) -> Tip:
        """Return the end of the journal: from memory if this store holds the claim, else from the leader."""
        known = self._tip
        return known if known is not None and self.is_held else await self.refresh()

    async def watched_tip(self) -> Tip:
        """Return the end of the journal as `tip` does, or as far as the follower has received it: whoever
        waits for more is woken by the follower."""
        is_watched = self._follower is not None and self._follower.is_live
        return self._tip if is_watched and self._tip is not None else await self.tip()

    async def refresh(self) -> Tip:
        """Read the end of the journal. Raises `SessionUnknown` if it was deleted."""
        found = await self._engine.last(self._stream, self._subject)
        if found is None:
            self._tip = None
            raise JournalMissing
        tip = await self._learn(found)
        if tip.gone:
            raise SessionUnknown(self.session_id)
        return tip

    async def _learn(self, message: Message) -> Tip:
        head, _ = split(JournalHead, message.data)
        record, at = head.record, message.seq
        if record is None:
            at = head.record_at
            record = self._tip.record if self._tip is not None and self._tip.record_at == at else None
        if record is None:
            holder = await self._engine.get(self._stream, at)
            record = None if holder is None else split(JournalHead, holder.data)[0].record
        if record is None:
            raise StoreCorrupt(f"the record of session {self.session_id} is missing", found="no record")
        return self._advance(message.seq, head, record, at)

    def _advance(self, seq: int, head: JournalHead, record: SessionRecord, record_at: int) -> Tip:
        tip = Tip(seq, head.last, record, record_at, head.claim, head.nonce, head.gone)
        if self._tip is None or seq >= self._tip.seq:
            grown = self._tip is not None and tip.last > self._tip.last
            self._tip = tip
            self._mark(head, seq)
            if grown:
                self._grew(self.session_id, tip.last)
        return self._tip

    # --- writing -----------------------------------------------------------------------------------

    async def begin(self, record: SessionRecord, batch: Batch | None = None) -> None:
        """Write the first message of a new journal."""
        body = b"" if batch is None else joined_events(batch)
        if batch is not None and batch.first != 1:
            raise StaleWriter(self.session_id, expected=batch.first - 1, actual=0)
        pieces = await write_pieces(self._engine, self._subject, body)
        count = 0 if batch is None else len(batch.events)
        head = JournalHead(nonce=new_nonce(), first=1, count=count, record=record, pieces=pieces)
        seq = await self._engine.put(self._subject, join(head, b"" if pieces else body))
        self._advance(seq, head, record, seq)

    async def append(self, batch: Batch, patch: RecordPatch | None = None) -> None:
        body = joined_events(batch)
        async with self._lock:
            await self._write(batch.first, len(batch.events), body, patch=patch)

    async def update(self, patch: RecordPatch) -> None:
        async with self._lock:
            await self._write(None, 0, b"", patch=patch)

    async def fence(self, claim: str) -> None:
        """Note a claim in the journal, unless that was done: from then on a store with another claim is
        refused."""
        async with self._lock:
            if self._claim != claim:
                self.release()
                await self.refresh()
                await self._write(None, 0, b"", claim=claim)
                self._claim, self.is_held = claim, True

    async def lose(self) -> None:
        """Note that another store has taken over the claim. Appends are refused until `release`."""
        self.is_held = False
        if self._awaited():
            await self.follow()

    def release(self) -> None:
        """Forget the claim."""
        self._claim, self.is_held = "", False

    async def end(self) -> None:
        """Write that the session was deleted."""
        async with self._lock:
            await self._write(None, 0, b"", gone=True)

    async def _write(
        self,
        first: int | None,
        count: int,
        body: bytes,
        *,
        patch: RecordPatch | None = None,
        claim: str | None = None,
        gone: bool = False,
    ) -> None:
        """Write a message behind the end of the journal. `first` is the number that its first event has to
        have; `None` for a message without events."""
        pieces: tuple[int, ...] = ()
        nonce = new_nonce()
        tip = self._tip or await self.refresh()
        if first is not None and first - 1 > tip.last:
            tip = await self.refresh()  # another store has appended since
        until = asyncio.get_running_loop().time() + self._engine.patience
        while True:
            if tip.nonce == nonce:
                return  # an earlier try was written and not confirmed
            self._check(tip, first)
            if len(body) > PIECE_BYTES and not pieces:
                pieces = await write_pieces(self._engine, self._subject, body)
            record = tip.record if patch is None else structs.replace(tip.record, **patch.changes())
            changed = patch is not None
            head = JournalHead(
                nonce=nonce,
                first=tip.last + 1,
                count=count,
                record=record if changed else None,
                record_at=0 if changed else tip.record_at,
                claim=tip.claim if claim is None else claim,
                pieces=pieces,
                gone=gone,
            )
            try:
                seq = await self._engine.publish(
                    self._subject, join(head, b"" if pieces else body), expected=tip.seq
                )
            except WrongSequence:
                tip = await self.refresh()
                continue
            except Unconfirmed as error:
                if asyncio.get_running_loop().time() > until:
                    raise StoreBusy(f"NATS did not confirm a write to session {self.session_id}") from error
                tip = await self.refresh()
                continue
            self._advance(seq, head, record, seq if changed else tip.record_at)
            return

    def _check(self, tip: Tip, first: int | None) -> None:
        if tip.gone:
            raise SessionUnknown(self.session_id)
        expected = tip.last if first is None else first - 1
        is_taken_over = self._claim not in ("", tip.claim)
        if is_taken_over:
            self.is_held = False
        if is_taken_over or tip.last != expected:
            raise StaleWriter(self.session_id, expected=expected, actual=tip.last)

    # --- reading -----------------------------------------------------------------------------------

    async def read(self, after: int, limit_bytes: int) -> Page:
        """The end of a page may be outdated; no batches always mean the end of the journal."""
        return self._read_received(after, limit_bytes) or await self._read_stored(after, limit_bytes)

    def _read_received(self, after: int, limit_bytes: int) -> Page | None:
        received = self._received
        while received and received[0][0].last <= after:
            received.popleft()
        if not received or received[0][0].first > after + 1:
            return None
        batches: list[Batch] = []
        size = 0
        for head, body in received:
            batches.append(self._split(head, body).after(after))
            size += len(body)
            if size >= limit_bytes:
                break
        return Page(tuple(batches), batches[-1].last, received[-1][0].last)

    async def _read_stored(self, after: int, limit_bytes: int) -> Page:
        tip = await self.tip()
        if after > tip.last:
            tip = await self.refresh()  # another store has taken the session over and appended
        batches: list[Batch] = []
        cursor, size, seq = after, 0, await self._seek(after, tip)
        while size < limit_bytes and cursor < tip.last:
            found = await self._engine.full_page(
                self._stream, self._subject, seq, limit_bytes=max(limit_bytes - size, 64 * 1024)
            )
            if not found:
                break
            for message in found:
                seq = message.seq + 1
                head, body = split(JournalHead, message.data)
                self._mark(head, message.seq)
                if not head.count or head.last <= cursor:
                    continue
                if head.first > cursor + 1:
                    return self._before_hole(batches, cursor, head.first - 1, tip)
                batch = (await self._batch(head, body)).after(cursor)
                batches.append(batch)
                cursor = batch.last
                size += sum(map(len, batch.events))
                if size >= limit_bytes:
                    break
        if not batches and cursor < tip.last:
            return self._before_hole(batches, cursor, tip.last, tip)
        return Page(tuple(batches), cursor, max(cursor, tip.last) if batches else tip.last)

    def _before_hole(self, batches: list[Batch], cursor: int, resume: int, tip: Tip) -> Page:
        if batches:
            return Page(tuple(batches), cursor, tip.last)
        found = f"events {cursor + 1} to {resume} are missing"
        raise StoreCorrupt(f"session {self.session_id} is damaged: {found}", found=found, resume=resume)

    async def _batch(self, head: JournalHead, body: bytes) -> Batch:
        if head.pieces:
            body = await read_pieces(self._engine, self._stream, head.pieces)
        return self._split(head, body)

    def _split(self, head: JournalHead, body: bytes) -> Batch:
        events = tuple(body.split(b"\n"))
        if len(events) != head.count:
            found = f"the batch of event {head.first} has {len(events)} events, expected {head.count}"
            raise StoreCorrupt(
                f"session {self.session_id} is damaged: {found}", found=found, resume=head.last
            )
        return Batch(head.first, events)

    def _mark(self, head: JournalHead, seq: int) -> None:
        mark = (head.first, seq)
        if not self._marks or mark > self._marks[-1]:
            self._marks.append(mark)
        elif self._marks[bisect_right(self._marks, mark) - 1] != mark:
            insort(self._marks, mark)
        if len(self._marks) > MOST_MARKS:
            del self._marks[1::2]

    async def _seek(self, after: int, tip: Tip) -> int:
        """Return the number of a message at or not far before the first event after a cursor."""
        wanted = after + 1
        at = bisect_right(self._marks, (wanted, 0)) - 1
        low = self._marks[at] if at >= 0 else (1, 1)
        high = self._marks[at + 1] if at + 1 < len(self._marks) else (tip.last + 1, tip.seq + 1)
        while high[1] - low[1] > NEAR and wanted - low[0] > NEAR:
            middle = (low[1] + high[1]) // 2
            found = await self._engine.page(self._stream, self._subject, middle, limit_bytes=1, count=1)
            if not found or found[0].seq >= high[1]:
                high = (high[0], middle)
                continue
            head, _ = split(JournalHead, found[0].data)
            self._mark(head, found[0].seq)
            if head.first <= wanted:
                low = (head.first, found[0].seq)
            else:
                high = (head.first, middle)
        return low[1]

    def note_position(self, event: int, seq: int) -> None:
        """Remember the message of an event, which a snapshot has noted."""
        if seq:
            insort(self._marks, (event + 1, seq))

    # --- following ---------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Watch for what other stores append, until no call has waited for it for some time."""
        self._followed_at = asyncio.get_running_loop().time()
        if self._follower is None:
            tip = await self.tip()
            self._follower = Follower(
                self._engine,
                self._stream,
                self._subject,
                self._receive,
                start=tip.seq + 1,
                wanted=self._is_wanted,
            )
            self._follower.begin()

    def _is_wanted(self) -> bool:
        wanted = self._awaited() or asyncio.get_running_loop().time() < self._followed_at + LINGER
        if not wanted:
            self._follower = None
            self._received.clear()
        return wanted

    def _receive(self, seq: int, data: bytes) -> None:
        head, body = split(JournalHead, data)
        self._keep_received(head, body)
        if self._tip is None or seq <= self._tip.seq:
            return
        if head.gone:
            self._deleted(self.session_id)
            return
        record = head.record or (self._tip.record if self._tip.record_at == head.record_at else None)
        if record is None:
            self._grew(self.session_id, head.last)  # the next use reads the record
            self._tip = None
        else:
            self._advance(seq, head, record, seq if head.record is not None else head.record_at)

    def _keep_received(self, head: JournalHead, body: bytes) -> None:
        received = self._received
        if head.pieces or (received and received[-1][0].last + 1 != head.first):
            received.clear()
        if head.count and not head.pieces:
            received.append((head, body))
        while sum(len(body) for _, body in received) > MOST_RECEIVED:
            received.popleft()

    async def leave(self) -> None:
        """Stop watching."""
        self._received.clear()
        follower, self._follower = self._follower, None
        if follower is not None:
            await follower.stop()

    # --- deleting ----------------------------------------------------------------------------------

    async def purge(self) -> None:
        """Remove everything of the journal."""
        await self._engine.purge(self._stream, self._subject)
        await self._engine.purge(self._stream, f"{self._subject}.piece")
