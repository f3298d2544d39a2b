"""Telling: what a transcript is written from, read from a store as it is now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from antiphon.engine.events import Event
from antiphon.errors import SessionUnknown
from antiphon.session_files.salvage import Missing, Stretch, salvage
from antiphon.stores.base import Store
from antiphon.transcripts import Account, AccountBuilder, account

LATER = "a later Antiphon wrote it"


async def read_account(
    store: Store,
    session_id: str,
    *,
    agent: str | None = None,
    report: Callable[[Missing], object] = lambda _: None,
) -> Account:
    """The account of a session, with its times. Of a damaged one, what is readable is told, with a notice
    where something is missing; `report` is called with that, too. Raises `SessionUnknown`."""
    record = await store.get(session_id)
    if record is None:
        raise SessionUnknown(session_id)
    builder = AccountBuilder()
    async for found in salvage(store, record):
        for each in [found] if isinstance(found, Missing) else _known(found, session_id):
            if isinstance(each, Missing):
                builder.skip(each.last, str(each))
                report(each)
            else:
                # Beside the loop: a long session takes seconds, and a hub has others.
                await asyncio.to_thread(builder.add, each)
    told = await asyncio.to_thread(account, builder, title=record.title, agent=agent)
    told.session_id = told.session_id or record.session_id
    told.cwd = told.cwd or record.cwd
    return told


def _known(stretch: Stretch, session_id: str) -> Iterator[list[Event] | Missing]:
    """A stretch, cut where an event in it is of a later version."""
    run: list[Event] = []
    for seq, event in enumerate(stretch.events, start=stretch.first):
        if event is not None:
            run.append(event)
            continue
        if run:
            yield run
        run = []
        yield Missing(session_id, seq, seq, LATER)
    if run:
        yield run
