"""Attaching a client: to the session that it has begun, or to one that is there, from a cursor on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET, Struct, structs

from antiphon.engine.items import Item
from antiphon.engine.json_values import encode
from antiphon.engine.session import Session
from antiphon.errors import AntiphonError, InvalidParams, RequestError
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.schema import v2
from antiphon.schema.antiphon.readers import read_meta, read_params
from antiphon.schema.antiphon.sessions import LoadSessionMeta, ReplayAfter
from antiphon.schema.wire import Unknown
from antiphon.server.distant.session import AnySession, DistantSession
from antiphon.server.request import Request
from antiphon.server.session import ServedSession
from antiphon.server.session_facts import SessionStart, options_of
from antiphon.server.subagents import announcements, follow_all
from antiphon.stores.base import Store


class Cursor(Struct, frozen=True):
    """The last event that a client has applied, and its own prompts whose messages it shows by itself."""

    after: int
    operations: tuple[str, ...] = ()

    async def check(self, session: AnySession, store: Store) -> None:
        """Raise `InvalidParams` for an event that is not there. The feed of a session that another server
        owns may not have read it yet."""
        fold = session.fold
        if self.after > fold.last_seq and isinstance(session, DistantSession):
            record = await store.get(session.id)
            if record is not None and self.after <= record.last:
                await session.feed.durable(self.after)
        if self.after > fold.last_seq:
            raise InvalidParams(f"the cursor names event {self.after}, but the last one is {fold.last_seq}")

    def recognize_prompts(self, voice: AttachmentWriter, fold: Session) -> None:
        """A v1 client does not get its own prompts: also not those that were taken while it was away."""
        for operation_id in self.operations:
            entry = fold.prompts.of_operation(operation_id)
            if entry is not None:
                voice.pending.recognize(entry)


def read_cursor(params: v2.ResumeSessionRequest, *, loaded: bool) -> Cursor | None:
    """Read the cursor of a resume, in `replayFrom`, or of a v1 load, in `_meta`, if there is one."""
    if loaded:
        ours = read_meta(LoadSessionMeta, params.meta)
        return None if ours.after is UNSET else Cursor(ours.after, tuple(ours.operations))
    replay_from = params.replay_from
    if not isinstance(replay_from, Unknown):
        return None
    if replay_from.get("type") != ReplayAfter.TYPE:
        raise InvalidParams(f"`replayFrom` is of the unknown type {replay_from.get('type')!r}")  # SESS-19
    return Cursor(read_params(ReplayAfter, replay_from, at=".replayFrom").seq)


def enter(
    request: Request,
    session: AnySession,
    answer: type[v2.NewSessionResponse] | type[v2.ForkSessionResponse],
) -> Any:
    """Attach the client to the session it has begun, and answer. It is sent all that happened since the
    session began, after the answer. A session that was begun before is shown as it is now, unless the client
    follows it already."""
    client, registry = request.client, request.registry
    voice, follows = client.voices.get(session.id), True
    start, again = None, False
    if voice is None:
        voice, follows = registry.attachments.new_voice(client, session.id), False
        start = session.start
        if isinstance(session, ServedSession):
            session.start = None
        again = start is None
        after = None if start is None else start.seq
        registry.attachments.pin(voice, session, history=again, after=after, begins=not again)
        client.voices[session.id] = voice
    said = start or SessionStart.of(session.fold)
    result, later = voice.writer.opened(
        answer(
            session_id=v2.SessionId(session.id),
            config_options=list(said.config_options),
            available_commands=[] if again and client.v1 else list(said.commands),
            meta={**session.opened_meta, **(voice.joined(session.control.introduction) or {})} or None,
        )
    )
    request.answer(result)
    if follows:
        return result
    for raw in later:
        voice.send_update(raw)
    if start is not None:
        for note in start.notes:
            voice.notify_at(*note)
        start.followed.set()
    voice.start(state=again)
    if isinstance(session, ServedSession) and session.new:
        session.new = False
        session.worker.begin()
    follow_all(registry, client, session)
    return result


async def join(
    request: Request,
    session: AnySession,
    voice: AttachmentWriter,
    *,
    history: bool = False,
    items: Sequence[Item] = (),
    cursor: Cursor | None = None,
    loaded: bool = False,
    answer: Callable[[Any], Any] = lambda result: result,
) -> Any:
    """Replay the requested history, send the response, then follow the live journal. `answer` makes the
    response of that to a load or resume."""
    client = request.client
    async with client.moving:
        after = None if cursor is None else cursor.after
        before = client.voices.get(session.id)  # it stays until this one replaces it
        if before is not None:
            await voice.take_over(before, after=after)
        if session.closing or session.gone:
            raise RequestError(AntiphonError.code, "The session was closed", data={"reason": "closed"})
        if not voice.pinned:
            request.registry.attachments.pin(voice, session, history=history, items=items, after=after)
        if cursor is not None:
            cursor.recognize_prompts(voice, session.fold)
        client.voices[session.id] = voice
        if session.start is not None:  # the client that began the session was lost before it followed
            session.start.followed.set()
    joined_at = voice.joined_at
    shown = loaded and history  # what was replayed already is not said again to a v1 client
    result, later = voice.writer.opened(
        v2.ResumeSessionResponse(
            config_options=options_of(session.fold),
            available_commands=[] if shown else session.fold.facts.available_commands,
            meta=voice.joined(session.control.introduction),
        ),
        loaded=loaded,
    )
    usage = session.fold.facts.usage
    if usage is not None and not history and cursor is None:  # USAGE-05
        known = usage.materialize()
        later = [*later, *voice.writer.write(known, encode(known))]
    if not history:
        later = [*later, *announcements(session, voice)]  # SUB-01
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def then() -> None:
        said = result
        if voice.joined_at != joined_at:  # the session has moved to another server, and the replay with it
            said = structs.replace(result, meta=voice.joined(session.control.introduction))
        given = answer(said)
        request.answer(given)
        for raw in later:
            voice.send_update(raw)
        if not answered.done():  # its request may have been cancelled meanwhile
            answered.set_result(given)

    # SESS-21: the state closes every resume; v1 has no state update.
    voice.start(state=True, then=then)
    # Moved by another resume, closed, or lost with its store before the replay was through: it says so.
    await voice.ended_or(answered)
    if not answered.done():
        reason = {"reason": "closed" if session.closing or session.gone else "detached"}
        raise RequestError(AntiphonError.code, "The session was left before it was replayed", data=reason)
    follow_all(request.registry, client, session)
    return answered.result()
