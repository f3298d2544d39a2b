"""The account of a stored session, from which a transcript is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from antiphon.engine.events import Event
from antiphon.errors import SessionUnknown
from antiphon.session_files.salvage import Journals, Missing, ReadableEvents, salvage
from antiphon.transcripts import Account, AccountBuilder, account

LATER = "a later Antiphon wrote it"


async def read_account(
    store: Journals,
    session_id: str,
    *,
    agent: str | None = None,
    report: Callable[[Missing], object] = lambda _: None,
) -> Account:
    """Read the account of a session, with its times. A damaged session gives what can be read, with a notice
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
                # In a thread: a long session takes seconds, and a hub serves others meanwhile.
                await asyncio.to_thread(builder.add, each)
    made = await asyncio.to_thread(account, builder, title=record.title, agent=agent)
    made.session_id = made.session_id or record.session_id
    made.cwd = made.cwd or record.cwd
    return made


def _known(stretch: ReadableEvents, session_id: str) -> Iterator[list[Event] | Missing]:
    """Divide a stretch at events of a later version."""
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
