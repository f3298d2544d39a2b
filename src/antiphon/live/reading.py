"""Reading a session in a store without opening it: nobody's claim is in the way, and nothing changes."""

from __future__ import annotations

from antiphon.engine.events import decode_event
from antiphon.engine.journal import Cursor
from antiphon.engine.session import Session
from antiphon.engine.snapshot import Restoring
from antiphon.errors import SessionUnknown
from antiphon.stores.base import Store


async def read_session(store: Store, session_id: str) -> Session:
    """The session as far as it is kept. Raises `SessionUnknown`."""
    fold = await _snapshot(store, session_id)
    while (page := await store.read(session_id, fold.last_seq)).batches:
        for batch in page.batches:
            fold.fold(map(decode_event, batch.events))
    if fold.created is None:
        raise SessionUnknown(session_id)
    return fold


async def _snapshot(store: Store, session_id: str) -> Session:
    """The kept snapshot. Whoever has the session open may put a newer one in place between two pages: then
    it is read from its beginning again."""
    while True:
        restoring, first = Restoring(), None
        after: str | None = ""
        while after is not None:
            upto, parts, after = await store.load_parts(session_id, after=after)
            first = upto if first is None else first
            if upto != first:
                break
            restoring.add(parts)
        else:
            return restoring.finish(Cursor(first or 0))
