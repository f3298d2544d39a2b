"""`_antiphon/attach` and `_antiphon/detach`, after the public draft, under our own prefix.

A client joins a session under a name, and says how much of the history it wants. The session does not change.
"""

from __future__ import annotations

from typing import Any

import msgspec

from antiphon.engine.events import Translated, Updated
from antiphon.engine.items import Item
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.snapshot import state_word
from antiphon.engine.transcript import TYPE_OF, Message, MessageType
from antiphon.errors import InvalidParams, RequestError, ResourceNotFound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.live.feed import SessionFeed
from antiphon.schema.antiphon import sessions as wire
from antiphon.schema.repair import Malformed
from antiphon.schema.v2 import permissions
from antiphon.server.connection import renamed
from antiphon.server.distant.session import AnySession
from antiphon.server.methods.entry import Cursor, join
from antiphon.server.registry import SessionRegistry
from antiphon.server.request import Request
from antiphon.server.session import ServedSession


async def attach(request: Request) -> Any:
    client = request.client
    params: wire.AttachRequest = request.params
    session_id, policy, after = params.session_id, params.history_policy, _after(params)
    info = renamed(client.info, params.client_id, params.client_info)
    history = policy is wire.HistoryPolicy.FULL
    voice = request.registry.attachments.new_voice(client, session_id, info)
    session = await _open(request.registry, session_id, voice if history else None)
    if policy is wire.HistoryPolicy.AFTER_MESSAGE:
        if params.after_message_id is None:
            raise InvalidParams("Object missing field `afterMessageId`, which `after_message` needs")
        after = await _end_of(session.feed, params.after_message_id)
        policy = wire.HistoryPolicy.FULL if after is None else policy
    cursor = None if after is None else Cursor(after)
    if cursor is not None:
        await cursor.check(session, request.registry.store)
    feed, state = session.feed, state_word(session.fold)

    def answer(result: Any) -> dict[str, Any]:
        attached = wire.AttachResponse(
            session_id=session_id,
            client_id=info.client_id,
            history_policy=policy,
            clients=feed.presence.clients(you=voice),
            state=state,
            seq=voice.joined_at,
        )
        return {**msgspec.to_builtins(result), **msgspec.to_builtins(attached)}

    return await join(
        request,
        session,
        voice,
        history=policy is wire.HistoryPolicy.FULL,
        items=_asked_about(session.fold) if policy is wire.HistoryPolicy.PENDING_ONLY else (),
        cursor=cursor,
        loaded=client.v1 and policy is wire.HistoryPolicy.FULL,
        answer=answer,
    )


async def detach(request: Request) -> wire.DetachResponse:
    params: wire.DetachRequest = request.params
    await request.registry.attachments.detach(request.client, params.session_id)
    return wire.DetachResponse(session_id=params.session_id, status="detached")


def _after(params: wire.AttachRequest) -> int | None:
    if params.history_policy is not wire.HistoryPolicy.AFTER:
        return None
    if params.after is None:
        missing = "Object missing field `after`, which `after` needs"
        raise RequestError(InvalidParams.code, missing, data={"reason": "bad_cursor"})
    return params.after


async def _open(registry: SessionRegistry, session_id: str, voice: AttachmentWriter | None) -> AnySession:
    """Open the session, with the roots it had where it was not open: an attach does not set it up."""
    was_open = registry.serving(session_id) is not None
    try:
        session = await registry.open(session_id, voice=voice)
    except ResourceNotFound as error:
        reason = {"sessionId": session_id, "reason": "unknown_session"}
        raise RequestError(ResourceNotFound.code, str(error), data=reason) from None
    if not was_open and isinstance(session, ServedSession):
        session.restore_directories()
    return session


# --- what is replayed ---------------------------------------------------------------------------------


async def _end_of(live: SessionFeed, message_id: str) -> int | None:
    """The number of the last event of a message: who has all of it has everything that came before that.
    `None` for a message that is not there."""
    message = _message(live.fold, message_id)
    if message is None:
        return None
    upto = live.fold.last_seq
    await live.durable(upto)
    end = cursor = message.position
    while cursor < upto:
        for event in await live.after(cursor):
            cursor = event.seq
            if isinstance(event.body, Updated | Translated) and _is_of(message, event.body):
                end = event.seq
    return end


def _message(fold: Session, message_id: str) -> Message | None:
    return next((found for type in MessageType if (found := fold.message(type, message_id))), None)


def _is_of(message: Message, body: Updated | Translated) -> bool:
    try:
        update: Any = body.update
    except Malformed:
        return False
    return TYPE_OF.get(type(update)) is message.type and update.message_id == message.id


def _asked_about(fold: Session) -> list[Item]:
    calls = [fold.tools.get(id) for question in fold.questions.open if (id := _call_of(question)) is not None]
    return [call for call in calls if call is not None]


def _call_of(question: Question) -> str | None:
    permission = question.permission
    subject = None if permission is None else permission.subject
    if isinstance(subject, permissions.ToolCallPermissionSubject):
        return subject.tool_call.tool_call_id
    return getattr(subject, "tool_call_id", None) or question.tool_call_id
