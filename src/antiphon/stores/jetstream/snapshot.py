"""SnapshotJournal: the snapshot of one session, as the saves that make it up.

A save is one message with the parts that changed; large ones have pieces. When the saves hold much more than
the snapshot, the whole snapshot is written anew and the older saves are removed.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from antiphon.errors import StaleWriter, StoreCorrupt
from antiphon.stores.base import Parts
from antiphon.stores.jetstream.engine import Engine, Unconfirmed, WrongSequence
from antiphon.stores.jetstream.layout import PIECE_BYTES
from antiphon.stores.jetstream.messages import SnapshotHead, join, new_nonce, split
from antiphon.stores.jetstream.pieces import read_pieces, write_pieces

SLACK = 4 * 1024 * 1024
"""Bytes of outdated parts that a snapshot may have before it is written anew."""


class Save(NamedTuple):
    """One save: the message that has it, and where its parts begin."""

    seq: int
    head: SnapshotHead
    head_bytes: int
    """Bytes of the head line, with which a save without pieces begins."""


class Part(NamedTuple):
    """Where a part is: in which save, from which byte on."""

    save: Save
    start: int
    size: int


class SessionSnapshot:
    def __init__(self, engine: Engine, session_id: str, key: str) -> None:
        self._engine = engine
        self._session_id = session_id
        self._stream, self._subject = engine.layout.place("snapshot", key)
        self._lock = asyncio.Lock()
        self._seq: int | None = None
        """The number of the last message; `None` before it was read."""
        self.upto = 0
        self.journal_seq = 0
        """The number of the journal message with the event `upto`; 0 if it is not known."""
        self._parts: dict[str, Part] = {}
        self._names: list[str] | None = None
        self._bytes = 0
        """Bytes of all saves."""
        self._page: tuple[int, bytes] = (0, b"")
        """The body of the save that was read last, by the number of its message."""

    def _reset(self) -> None:
        self._seq, self.upto, self.journal_seq, self._bytes = 0, 0, 0, 0
        self._parts, self._names = {}, None

    async def refresh(self) -> None:
        """Read which parts there are, unless nothing was saved since the last time."""
        last = await self._engine.last(self._stream, self._subject)
        if last is None:
            self._reset()
        elif last.seq != self._seq:
            self._reset()
            await self._read_saves(last.seq)

    async def _read_saves(self, last: int) -> None:
        seq = 1
        while seq <= last:
            found = await self._engine.full_page(
                self._stream, self._subject, seq, limit_bytes=4 * PIECE_BYTES
            )
            if not found:
                return
            for message in found:
                seq = message.seq + 1
                head, body = split(SnapshotHead, message.data)
                save = Save(message.seq, head, len(message.data) - len(body))
                if head.pieces:
                    body = await read_pieces(self._engine, self._stream, head.pieces[: self._spanned(head)])
                self._fold(save, body[: head.table])

    @staticmethod
    def _spanned(head: SnapshotHead) -> int:
        """Return the number of pieces that have the table."""
        return -(-head.table // PIECE_BYTES)

    def _fold(self, save: Save, table: bytes) -> None:
        try:
            rows = msgspec.json.decode(table, type=list[tuple[str, int | None]])
        except msgspec.DecodeError as error:
            raise StoreCorrupt(f"the snapshot of session {self._session_id} is damaged: {error}") from error
        if save.head.whole:
            self._reset()
        start = save.head.table
        for name, size in rows:
            if size is None:
                self._parts.pop(name, None)
            else:
                self._parts[name] = Part(save, start, size)
                start += size
        self._seq, self._names = save.seq, None
        self.upto, self.journal_seq = save.head.upto, save.head.journal
        self._bytes += save.head.size

    # --- saving ------------------------------------------------------------------------------------

    async def save(self, upto: int, parts: Mapping[str, bytes | None], *, journal_seq: int) -> None:
        async with self._lock:
            if self._seq is None:
                await self.refresh()
            await self._write(upto, parts, journal_seq=journal_seq)
            live = sum(part.size for part in self._parts.values())
            if self._bytes > 2 * live + SLACK:
                await self._compact()

    async def _write(
        self, upto: int, parts: Mapping[str, bytes | None], *, journal_seq: int, whole: bool = False
    ) -> int:
        table = msgspec.json.encode(
            [(name, None if part is None else len(part)) for name, part in parts.items()]
        )
        body = b"".join((table, *(part for part in parts.values() if part is not None)))
        pieces = await write_pieces(self._engine, self._subject, body)
        nonce = new_nonce()
        while True:
            if upto < self.upto:
                raise StaleWriter(self._session_id, expected=upto, actual=self.upto)
            head = SnapshotHead(
                nonce=nonce,
                upto=upto,
                table=len(table),
                size=len(body),
                whole=whole,
                journal=journal_seq,
                pieces=pieces,
            )
            message = join(head, b"" if pieces else body)
            try:
                seq = await self._engine.publish(self._subject, message, expected=self._seq)
            except (WrongSequence, Unconfirmed):
                last = await self._engine.last(self._stream, self._subject)
                if last is None or split(SnapshotHead, last.data)[0].nonce != nonce:
                    await self.refresh()
                    continue
                seq = last.seq
            line = len(message) - (0 if pieces else len(body))
            self._fold(Save(seq, head, line), table)
            return seq

    async def _compact(self) -> None:
        """Write the whole snapshot as one save, and remove the saves before it."""
        parts: dict[str, bytes | None] = {name: await self._part(part) for name, part in self._parts.items()}
        pieces = await self._engine.last(self._stream, f"{self._subject}.piece")
        seq = await self._write(self.upto, parts, journal_seq=self.journal_seq, whole=True)
        await self._engine.purge(self._stream, self._subject, before=seq)
        if pieces is not None:
            await self._engine.purge(self._stream, f"{self._subject}.piece", before=pieces.seq + 1)

    async def drop(self) -> None:
        async with self._lock:
            await self._engine.purge(self._stream, self._subject)
            await self._engine.purge(self._stream, f"{self._subject}.piece")
            self._reset()
            last = await self._engine.last(self._stream, self._subject)
            self._seq = 0 if last is None else last.seq

    # --- loading -----------------------------------------------------------------------------------

    async def load(self, after: str, limit_bytes: int) -> Parts:
        async with self._lock:
            if not after or self._seq is None:
                await self.refresh()
            if self._names is None:
                self._names = sorted(self._parts)
            names = self._names
            first = at = bisect_right(names, after)
            size = 0
            while at < len(names) and size < limit_bytes:
                size += self._parts[names[at]].size
                at += 1
            page = {name: await self._part(self._parts[name]) for name in names[first:at]}
            return Parts(self.upto, page, names[at - 1] if at < len(names) else None)

    async def _part(self, part: Part) -> bytes:
        save = part.save
        if not save.head.pieces:
            if self._page[0] != save.seq:
                message = await self._engine.get(self._stream, save.seq)
                if message is None:
                    raise StoreCorrupt(f"a save of session {self._session_id}'s snapshot is missing")
                self._page = save.seq, message.data[save.head_bytes :]
            return self._page[1][part.start : part.start + part.size]
        low, high = part.start // PIECE_BYTES, -(-(part.start + part.size) // PIECE_BYTES)
        body = await self._pieces(save.head.pieces[low:high])
        return body[part.start - low * PIECE_BYTES :][: part.size]

    async def _pieces(self, numbers: tuple[int, ...]) -> bytes:
        """Read pieces; neighbouring parts share one, so the last one is kept."""
        if len(numbers) == 1 and numbers[0] == -self._page[0]:
            return self._page[1]
        body = await read_pieces(self._engine, self._stream, numbers)
        if len(numbers) == 1:
            self._page = -numbers[0], body
        return body
