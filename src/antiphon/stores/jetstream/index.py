"""SessionIndex: which sessions exist, for all stores of an installation.

A session exists once its entry is written, and that is one message: so a session is created, imported and
deleted at one moment. Every store keeps a copy of the entries in memory for its lists.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import Sequence

from msgspec import structs

from antiphon.errors import SessionExists, StoreBusy
from antiphon.stores.jetstream.engine import Engine, Unconfirmed, WrongSequence
from antiphon.stores.jetstream.follower import Follower
from antiphon.stores.jetstream.messages import IndexEntry, join, new_key, split

MARKER_SECONDS = 24 * 3600.0
"""Seconds for which a deletion stays in the index, so that every store learns of it."""


class SessionIndex:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._layout = engine.layout
        self._copy = IndexCopy(engine)

    async def close(self) -> None:
        await self._copy.stop()

    async def find(self, session_id: str) -> IndexEntry | None:
        """Return the entry of a session that exists, as the leader has it."""
        return (await self._look(session_id))[0]

    async def _look(self, session_id: str) -> tuple[IndexEntry | None, int]:
        """Return the visible entry of a session, and the number of the last message about it."""
        found = await self._engine.last(self._layout.index, self._layout.entry(session_id))
        if found is None:
            return None, 0
        entry, _ = split(IndexEntry, found.data)
        visible = not entry.gone
        if visible and entry.arrival:
            arrived = self._layout.arrival(entry.arrival)
            visible = await self._engine.last(self._layout.index, arrived) is not None
        return (entry if visible else None), found.seq

    async def add(self, *entries: IndexEntry) -> None:
        """Make sessions visible, all in one moment. Raises `SessionExists`; then none of them is."""
        if len(entries) == 1:
            await self._put(entries[0])
            return
        arrival = new_key()
        done: list[IndexEntry] = []
        try:
            for entry in entries:
                await self._put(_arriving(entry, arrival))
                done.append(entry)
        except BaseException:
            for entry in done:
                await self.remove(entry)
            raise
        subject = self._layout.arrival(arrival)
        number = await self._engine.put(subject, join(_arriving(entries[0], arrival, complete=True)))
        for entry in entries:
            await self._put(entry)
        await self._engine.remove(self._layout.index, number)

    async def _put(self, entry: IndexEntry) -> None:
        """Write an entry. Raises `SessionExists` unless it is free, or is the same session's."""
        while True:
            there, seq = await self._look(entry.session_id)
            if there is not None and there.key != entry.key:
                raise SessionExists(f"session {entry.session_id} is already there")
            if there == entry:
                return
            try:
                await self._engine.publish(self._layout.entry(entry.session_id), join(entry), expected=seq)
                return
            except (WrongSequence, Unconfirmed):
                await asyncio.sleep(0)  # look again: it may be written, or another store was first

    async def move(self, entry: IndexEntry, cwd: str) -> None:
        """Note another working directory of a session."""
        await self._put(structs.replace(entry, cwd=cwd, arrival=""))

    async def remove(self, entry: IndexEntry) -> None:
        """Delete a session's entry, unless another session has it."""
        subject = self._layout.entry(entry.session_id)
        while True:
            found = await self._engine.last(self._layout.index, subject)
            if found is None:
                return
            there, _ = split(IndexEntry, found.data)
            if there.gone or there.key != entry.key:
                return
            there.gone = True
            try:
                await self._engine.publish(subject, join(there), expected=found.seq, ttl=MARKER_SECONDS)
                return
            except (WrongSequence, Unconfirmed):
                await asyncio.sleep(0)

    async def page(
        self, *, cwd: str | None, after: tuple[int, str] | None, limit: int
    ) -> tuple[Sequence[IndexEntry], bool]:
        """Return entries, the newest first, and whether there are more."""
        newest = await self._engine.last(self._layout.index, self._layout.every_index_subject)
        await self._copy.reach(0 if newest is None else newest.seq)
        return self._copy.page(cwd=cwd, after=after, limit=limit)


def _arriving(entry: IndexEntry, arrival: str, *, complete: bool = False) -> IndexEntry:
    return structs.replace(entry, arrival=arrival, complete=complete)


class IndexCopy:
    """The entries of all sessions in memory, in the order of lists."""

    def __init__(self, engine: Engine) -> None:
        layout = engine.layout
        self._follower = Follower(
            engine, layout.index, layout.every_index_subject, self._received, start=None
        )
        self._patience = engine.patience
        self._reached = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._entries: dict[str, IndexEntry] = {}
        self._order: list[tuple[int, str]] = []
        self._arriving: dict[str, list[IndexEntry]] = {}
        """Sessions of imports that are not complete, by the imports."""

    async def stop(self) -> None:
        await self._follower.stop()

    async def reach(self, seq: int) -> None:
        """Wait until the copy has the message with this number."""
        self._follower.begin()
        if seq > self._reached:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((seq, waiting))
            try:
                async with asyncio.timeout(self._patience):
                    await waiting
            except TimeoutError:
                raise StoreBusy("NATS did not deliver the list of sessions") from None

    def _received(self, seq: int, data: bytes) -> None:
        entry, _ = split(IndexEntry, data)
        if entry.complete:
            for arrived in self._arriving.pop(entry.arrival, ()):
                self._apply(arrived)
        elif entry.arrival and not entry.gone:
            self._arriving.setdefault(entry.arrival, []).append(entry)
        else:
            self._apply(entry)
        self._reached = seq
        ready = [waiting for number, waiting in self._waiting if number <= seq]
        self._waiting = [each for each in self._waiting if each[0] > seq]
        for waiting in ready:
            if not waiting.done():
                waiting.set_result(None)

    def _apply(self, entry: IndexEntry) -> None:
        known = self._entries.pop(entry.session_id, None)
        if known is not None:
            del self._order[bisect_left(self._order, (known.created_at, known.session_id))]
        if not entry.gone:
            self._entries[entry.session_id] = entry
            insort(self._order, (entry.created_at, entry.session_id))

    def page(
        self, *, cwd: str | None, after: tuple[int, str] | None, limit: int
    ) -> tuple[Sequence[IndexEntry], bool]:
        at = len(self._order) if after is None else bisect_left(self._order, after)
        found: list[IndexEntry] = []
        while at > 0:
            at -= 1
            entry = self._entries[self._order[at][1]]
            if cwd is None or entry.cwd == cwd:
                if len(found) == limit:
                    return found, True
                found.append(entry)
        return found, False
