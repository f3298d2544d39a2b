"""The journal reader: a store's file with bits flipped, cut off, or with batches changed. What is read is in
order and without gaps, a damage is told as one, and the other session loses nothing by a damaged batch.

An input is a list of edits to a good file, 8 bytes each. The first byte says what: below 192 the file itself
changes, above that one batch of session `a`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from antiphon.engine.events import UnreadableEvent, decode_event
from antiphon.errors import SessionUnknown, StoreCorrupt, StoreError
from antiphon.live.stored_session import read_session
from antiphon.stores import SQLiteStore
from antiphon.stores.base import Batch
from antiphon.testing.store_samples import session
from tests.fuzz.running import Broken, Check

WORDS = tuple(
    bytes([what, *rest]) for what in (0, 64, 128, 200, 230, 250) for rest in ([0, 3, 9, 1, 0, 0, 1],)
)
EDIT = 8
SESSIONS, EVENTS = "ab", 60
PAGES = 4


def _seeds() -> list[bytes]:
    chosen = itertools.product((0, 70, 130, 200, 215, 230, 245), (0, 1, 9, 77), (1, 128))
    return [b"", *(bytes([what, 0, where, 5, bit, 0, 0, 3]) for what, where, bit in chosen)]


SEEDS = _seeds()


def _event(session_id: str, seq: int) -> bytes:
    if seq == 1:
        body = f'{{"type":"session_created","session_id":"{session_id}","cwd":"/","format":1}}'
    else:
        text = f"{session_id}{seq} " * (1 + seq % 30)
        body = (
            '{"type":"update","update":{"sessionUpdate":"agent_message_chunk","messageId":"m",'
            f'"content":{{"type":"text","text":"{text}"}}}}}}'
        )
    return f'{{"seq":{seq},"at":1700000000000,"body":{body}}}'.encode()


async def _build(path: Path) -> None:
    async with SQLiteStore(path) as store:
        for name in SESSIONS:
            await store.create(session(name))
            for first in range(1, EVENTS + 1, 5):
                lines = tuple(_event(name, seq) for seq in range(first, first + 5))
                await store.append(name, Batch(first, lines))


@contextlib.contextmanager
def opened() -> Iterator[Check]:
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        good, path = Path(folder) / "good.db", Path(folder) / "s.db"
        runner.run(_build(good))
        content = good.read_bytes()

        def check(data: bytes) -> str:
            for left in Path(folder).glob("s.db*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(_damaged(content, data))
            only_batches = _damage_batches(path, data)
            return runner.run(_check(path, only_batches))

        yield check


def _edits(data: bytes) -> list[bytes]:
    return [data[at : at + EDIT] for at in range(0, len(data) - EDIT + 1, EDIT)][:8]


def _damaged(content: bytes, data: bytes) -> bytes:
    file = bytearray(content)
    for what, *where, bit, _, size, _ in _edits(data):
        if what >= 192:
            continue
        at = int.from_bytes(bytes(where)) % max(1, len(file))
        if what < 64 and file:
            file[at] ^= bit or 1
        elif what < 128:
            file[at : at + size * 16] = bytes(min(size * 16, len(file) - at))
        else:
            del file[at:]
    return bytes(file)


def _damage_batches(path: Path, data: bytes) -> bool:
    """Change batches of session `a`; whether nothing else was changed."""
    edits = [edit for edit in _edits(data) if edit[0] >= 192]
    if len(edits) < len(_edits(data)):
        return False  # the file itself is damaged: what SQLite makes of it is to be seen
    if not edits:
        return True
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (key,) = connection.execute("SELECT min(session) FROM batches").fetchone()
        for what, *where, bit, _, size, _ in edits:
            rows = connection.execute("SELECT last, events FROM batches WHERE session = ?", (key,)).fetchall()
            if not rows:
                break
            at = int.from_bytes(bytes(where))
            last, blob = rows[at % len(rows)]
            if what < 208 and isinstance(blob, bytes) and blob:
                place = at % len(blob)
                blob = blob[:place] + bytes([blob[place] ^ (bit or 1)]) + blob[place + 1 :]
            elif what < 224 and isinstance(blob, bytes):
                blob = blob[: at % (len(blob) + 1)]
            elif what < 240:
                blob = None if bit % 2 else "text" if size % 2 else b""
            statement, values = (
                "UPDATE batches SET events = ? WHERE session = ? AND last = ?",
                (blob, key, last),
            )
            if what >= 240:
                statement, values = "DELETE FROM batches WHERE session = ? AND last = ?", (key, last)
            with contextlib.suppress(sqlite3.IntegrityError):
                connection.execute(statement, values)
    return True


async def _check(path: Path, only_batches: bool) -> str:
    outcomes = []
    try:
        async with SQLiteStore(path) as store:
            if only_batches:
                listed = [record.session_id for record in (await store.list()).records]
                if sorted(listed) != list(SESSIONS):
                    raise Broken(f"a damaged batch hides sessions: {listed} are listed")
            else:
                with contextlib.suppress(StoreError):
                    await store.list()
            for name in SESSIONS:
                outcomes.append(await _read(store, name, good=only_batches and name == "b"))
    except StoreError as error:
        if only_batches:
            raise Broken(f"a damaged batch keeps the store from opening: {error}") from error
        return f"refused: {type(error).__name__}"
    except SessionUnknown as error:
        if only_batches:
            raise Broken(f"a damaged batch hides its session: {error}") from error
        outcomes.append("unknown")
    return ", ".join(outcomes)


async def _read(store: SQLiteStore, name: str, *, good: bool) -> str:
    cursor, read, damages, altered, misnumbered = 0, 0, 0, 0, False
    for _ in range(EVENTS * 3):
        try:
            page = await store.read(name, cursor, limit_bytes=2000)
        except StoreCorrupt as damage:
            damages += 1
            if damage.resume is None:
                break
            if damage.resume <= cursor:
                raise Broken(f"a damage at {cursor} says to go on at {damage.resume}") from damage
            cursor = damage.resume
            continue
        except StoreError:
            damages += 1
            break
        if not page.batches:
            break
        for batch in page.batches:
            if batch.first != cursor + 1:
                raise Broken(f"events {cursor + 1} to {batch.first - 1} are skipped in silence")
            for seq, line in enumerate(batch.events, batch.first):
                read += 1
                if line == _event(name, seq):
                    continue
                altered += 1
                misnumbered |= _is_misnumbered(line, seq)
            cursor = batch.last
    else:
        raise Broken("reading a journal does not end")
    if misnumbered and await _folds(store, name):
        raise Broken(f"session {name} is opened although an event has the number of another")
    if good and (read, damages, altered) != (EVENTS, 0, 0):
        raise Broken(f"a damage in session a reaches session {name}: {read} events, {damages} damages")
    return f"{name} {'whole' if read == EVENTS else 'part'} {min(damages, 3)} {min(altered, 3)}"


def _is_misnumbered(line: bytes, seq: int) -> bool:
    """Whether an event that was altered can still be read, and has the number of another event."""
    try:
        return decode_event(line).seq != seq
    except UnreadableEvent:
        return False


async def _folds(store: SQLiteStore, name: str) -> bool:
    try:
        await read_session(store, name)
    except (StoreError, SessionUnknown):
        return False
    return True
