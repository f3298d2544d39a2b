"""Clients of one session at several hubs, and whether all of them agree with the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from antiphon.client import ClientSession
from tests.cluster.stand import DEADLINE, ClusterHub, Stand
from tests.faults.hub_checks import Kept, check_record, check_view, read_kept
from tests.faults.hub_client import Participant
from tests.faults.hub_record import Record
from tests.faults.violation import Violation


def member(hub: ClusterHub, dialect: str = "v2", *, number: int = 0) -> Participant:
    """A client that stays, and answers what it is asked."""
    return Participant(number, f"{dialect}", number, hub.process, stays=True)


@asynccontextmanager
async def members(*where: tuple[ClusterHub, str]) -> AsyncIterator[tuple[str, list[Participant]]]:
    """Clients at hubs, by their dialects, of a session that the first one makes. Gives its id."""
    there = [member(hub, dialect, number=number) for number, (hub, dialect) in enumerate(where)]
    try:
        await there[0].connect()
        session_id = await there[0].create()
        await asyncio.gather(*(each.join(session_id) for each in there[1:]))
        yield session_id, there
    finally:
        await asyncio.gather(*(each.leave() for each in there))


async def agree(stand: Stand, session_id: str, there: Sequence[Participant]) -> Kept:
    """Wait until every client holds what the store has. Raises `Violation` if one does not in time, or was
    told something else on the way."""
    loop = asyncio.get_running_loop()
    until = loop.time() + DEADLINE
    async with stand.store() as store:
        while True:
            kept = await read_kept(store, session_id)
            try:
                for each in there:
                    check_view(_record(each, session_id), kept, each)
                break
            except Violation:
                if loop.time() > until:
                    raise
            await asyncio.sleep(0.05)
    for each in there:
        record = _record(each, session_id)
        record.whole = True
        check_record(record, kept)
    return kept


def _record(participant: Participant, session_id: str) -> Record:
    """What a client was told of a session since it joined it."""
    session = participant.sessions[session_id]
    return next(record for record in participant.records if record.session is session)


async def says(session: ClientSession, text: str) -> None:
    """Wait until a message of the session contains a text."""
    await becomes(session, lambda: any(text in message.text for message in session.messages))


async def rests(session: ClientSession) -> None:
    """Wait until the session is idle, and nothing waits."""
    await becomes(session, lambda: session.turn is None and not session.queue.entries)


async def becomes(session: ClientSession, holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        events = session.events()
        while not holds():
            await anext(events)
