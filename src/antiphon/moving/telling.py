"""Telling: what a transcript is written from, read from a store as it is now."""

from __future__ import annotations

import asyncio

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
        lines = [line for batch in page.batches for line in batch.events]
        # Beside the loop: a long session takes seconds, and a hub has others.
        await asyncio.to_thread(gathering.add, map(decode_event, lines))
    return await asyncio.to_thread(account, gathering, title=record.title, agent=agent)
