"""Subagents: the clients of a session follow the sessions that work for it (SUB-01, unstable).

A subagent's session has its own journal. Each client of the parent is attached to it as soon as the
announcement is on its way there; it need not resume it, and may do nothing to it but what the announcement
allows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from antiphon.engine.json_values import encode
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import AntiphonError, SessionUnknown, StoreError
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.live.stored_session import read_session
from antiphon.server.connection import ClientConnection
from antiphon.server.distant.session import AnySession, DistantSession
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession
from antiphon.stores.base import Store

logger = logging.getLogger("antiphon.server")


def takes_subagents(client: ClientConnection) -> bool:
    """Return whether a client understands subagents: every v2 client does (SUB-01)."""
    return not client.v1 or (client.v1_client is not None and client.v1_client.subagents is not None)


def follow(
    registry: SessionRegistry,
    client: ClientConnection,
    parent: AnySession,
    child: AnySession,
    announced: int,
) -> None:
    """Attach a client to a subagent, once it has been sent everything of the parent up to `announced`."""
    voice = client.voices.get(parent.id)
    if voice is None or not takes_subagents(client) or child.id in client.voices:
        return
    joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    child.joining.add(joined)

    async def attach() -> None:
        try:
            await voice.reached(announced)
            if client.voices.get(parent.id) is not voice or child.id in client.voices or child.gone:
                return  # it left, or follows already
            attached = client.voices[child.id] = registry.attachments.new_voice(client, child.id)
            registry.attachments.pin(attached, child, history=True)
            attached.start(state=True)
            follow_all(registry, client, child)
        finally:
            child.joining.discard(joined)
            joined.set_result(None)
            registry.distant.leave_unused(child.id)

    client.wire.start_soon(attach())


def announcements(session: AnySession, voice: AttachmentWriter) -> list[bytes]:
    """Return the updates of the subagents at work, for a client to which nothing was replayed."""
    working = [info.materialize() for info in session.fold.subagents if info.working]
    return [raw for update in working for raw in voice.writer.write(update, encode(update))]


def follow_all(registry: SessionRegistry, client: ClientConnection, session: AnySession) -> None:
    """Attach a client that has joined a session to the subagents that are at work for it, too."""
    for info in session.fold.subagents:
        if isinstance(session, ServedSession):
            child = registry.find(info.id)
            if child is not None and child.parent is session:
                follow(registry, client, session, child, session.fold.last_seq)
        elif info.working:
            client.wire.start_soon(_follow_one(registry, client, session, info.id))


async def _follow_one(
    registry: SessionRegistry, client: ClientConnection, parent: DistantSession, child_id: str
) -> None:
    try:
        await follow_distant(registry, [client], parent, child_id)
    except AntiphonError as error:
        logger.warning("subagent of %s is not followed: %s", parent.id, error)


async def follow_distant(
    registry: SessionRegistry, clients: Collection[ClientConnection], parent: DistantSession, child_id: str
) -> None:
    """Attach clients to a subagent that works at another server. They get all of it, also if it is over by
    now. Raises `ResourceNotFound` if its owner has not begun the session yet."""
    if not any(map(takes_subagents, clients)):
        return
    announced = parent.fold.last_seq
    child = await registry.follow(child_id)
    if child.gone:  # it was over at that moment
        child = await registry.follow(child_id)
    for client in clients:
        follow(registry, client, parent, child, announced)
    registry.distant.leave_unused(child_id)
    if isinstance(child, DistantSession):
        child.parent = parent
        await registry.distant.leave_if_over(child)


async def delete_subagents(store: Store, session_id: str) -> None:
    """Delete the sessions that worked for one that is to be deleted, the innermost first.

    A damaged session does not say which ones worked for it: they stay. Sessions that work for each other in a
    circle are each deleted once.
    """
    found = {session_id: None}
    for id in (waiting := [session_id]):
        try:
            session = await read_session(store, id)
        except (SessionUnknown, StoreError):
            continue
        for info in session.subagents:
            record = await store.get(info.id)
            if info.id not in found and record is not None and record.meta.get(SUBAGENT_OF) == id:
                found[info.id] = None
                waiting.append(info.id)
    for id in reversed(waiting[1:]):
        await store.delete(id)
