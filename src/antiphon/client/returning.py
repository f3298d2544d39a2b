"""Returning: over a new link the agent is initialized again, and every session is resumed.

With a cursor a session goes on where its link was cut: what happened meanwhile comes as it was written, and
what was under way goes on. Without one it is opened again as the protocol has it, and its view begins anew.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from msgspec.structs import replace

from antiphon.client.spoken import SpokenV1
from antiphon.errors import AntiphonError, LinkLost, LocalError
from antiphon.schema import v2
from antiphon.schema.version import META_KEY
from antiphon.schema.wire import Unknown

if TYPE_CHECKING:
    from antiphon.client.client import Client
    from antiphon.client.session import ClientSession

logger = logging.getLogger("antiphon.client")


class ComesBackOtherwise(LinkLost):
    """The agent that was reached speaks otherwise than the one of before."""


async def come_back(client: Client) -> None:
    """Raises `LinkLost` where the link is lost again, and whatever else keeps the client from its return."""
    before = client.agreement
    await client.initialize()
    if client.agreement != before:
        raise ComesBackOtherwise("the agent speaks another version than before")
    resumed = await asyncio.gather(
        *(_resume(client, session) for session in client.sessions), return_exceptions=True
    )
    for failure in resumed:
        if isinstance(failure, BaseException):
            raise failure
    client.restored()


async def _resume(client: Client, session: ClientSession) -> None:
    """A session that the agent does not have any more, or does not give, is left; the others go on."""
    for child in session.subagents:
        if child.state is not v2.State.IDLE:
            await _resume(client, child.session)  # with its parent it would be told anew
    applied = asyncio.Event()
    client.connection.behind(session.id, applied.set)
    await applied.wait()  # only then it is known how far it was read
    try:
        if session.lasts:
            await _from_cursor(client, session)
        else:
            await _anew(client, session)
    except LinkLost:
        raise
    except AntiphonError as error:
        logger.warning("session %s could not be resumed: %s", session.id, error)
        client.leave_session(session, f"it could not be resumed: {error}")


async def _from_cursor(client: Client, session: ClientSession) -> None:
    setup, place = session.place.reopening(session.cwd), session.place
    if isinstance(session.spoken, SpokenV1):
        where = {"after": place.cursor, "operations": list(place.operations)}
        wanted = replace(setup, replay_from=v2.ReplayFromStart(), meta={META_KEY: where})
    else:
        after: v2.ReplayFrom = Unknown({"type": "_antiphon_after", "seq": place.cursor})
        wanted = replace(setup, replay_from=after)
    await client.opening.from_cursor(wanted, session)


async def _anew(client: Client, session: ClientSession) -> None:
    able = client.abilities
    if not (able.load or able.resume):
        raise LocalError("this agent cannot bring a session back")
    if able.load:
        session.restart()
    setup = session.place.reopening(session.cwd)
    wanted = replace(setup, replay_from=v2.ReplayFromStart() if able.load else None)
    await client.opening.again(wanted, session, first=True)
