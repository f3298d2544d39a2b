"""Sample sessions and events for the checks of stores, and functions that read them back."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from antiphon.errors import AntiphonError
from antiphon.stores.base import Batch, SessionRecord, Store

E = TypeVar("E", bound=AntiphonError)


def session(session_id: str, *, at: int = 0, cwd: str = "/site") -> SessionRecord:
    return SessionRecord(session_id=session_id, cwd=cwd, created_at=at, updated_at=at)


def events(first: int, last: int) -> Batch:
    """A batch whose events say their number."""
    return Batch(first, tuple(b'{"seq":%d,"text":"\xc3\xa9 \\n"}' % seq for seq in range(first, last + 1)))


async def read_all(
    store: Store, session_id: str, *, after: int = 0, limit_bytes: int = 1 << 20
) -> list[bytes]:
    """All events after a cursor, page by page; each page has to follow the one before."""
    found: list[bytes] = []
    cursor = after
    while (page := await store.read(session_id, cursor, limit_bytes=limit_bytes)).batches:
        for batch in page.batches:
            assert batch.first == cursor + 1, f"event {cursor + 1} was skipped or repeated"
            found += batch.events
            cursor = batch.last
        assert page.cursor == cursor, "a page says where to read on"
        assert page.last >= cursor, "a journal does not end before what was read of it"
    assert page.cursor == cursor
    return found


async def refused(kind: type[E], call: Awaitable[object], promise: str) -> E:
    """The error that a call has to end with."""
    try:
        await call
    except kind as error:
        return error
    raise AssertionError(promise)
