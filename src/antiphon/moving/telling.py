"""Telling: what a transcript is written from, read from a store as it is now."""

from __future__ import annotations

from antiphon.engine.events import decode_event
from antiphon.errors import SessionUnknown
from antiphon.stores.base import Store
from antiphon.transcripts import Account, Gathering, account


async def tell_session(store: Store, session_id: str, *, agent: str | None = None) -> Account:
    """The account of a session, with its times. Raises `SessionUnknown`."""
    record = await store.get(session_id)
    if record is None:
        raise SessionUnknown(session_id)
    gathering = Gathering()
    while (page := await store.read(session_id, gathering.fold.last_seq)).batches:
        for batch in page.batches:
            gathering.add(map(decode_event, batch.events))
    return account(gathering, title=record.title, agent=agent)
