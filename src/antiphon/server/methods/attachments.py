"""`_antiphon/attach` and `_antiphon/detach`, after the public draft, under our own prefix.

A client joins a session under a name, and says how much of the history it wants. The session does not change.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from antiphon.engine.events import Translated, Updated
from antiphon.engine.items import Item
from antiphon.engine.questions import Question
from antiphon.engine.session import Session
from antiphon.engine.snapshot import state_word
from antiphon.engine.transcript import TYPE_OF, Message, MessageType
from antiphon.engine.who import ID_LIMIT, read_client_id
from antiphon.errors import InvalidParams, RequestError, ResourceNotFound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.live.session import LiveSession
from antiphon.schema.repair import Malformed
from antiphon.schema.v2 import permissions
from antiphon.server.attach import Cursor, join
from antiphon.server.connection import ClientInfo, renamed
from antiphon.server.params import read_text
from antiphon.server.registry import SessionRegistry
from antiphon.server.request import Request
from antiphon.server.session import ServedSession


class HistoryPolicy(StrEnum):
    FULL = "full"
    PENDING_ONLY = "pending_only"
    """The questions that are open, and the tool calls they are about."""
    NONE = "none"
    AFTER_MESSAGE = "after_message"
    AFTER = "after"


async def attach(request: Request) -> Any:
    client, params = request.client, request.params
    session_id = read_text(params, "sessionId")
    policy, after, info = _policy(params), _after(params), _client_info(params, client.info)
    history = policy is HistoryPolicy.FULL
    voice = request.registry.new_voice(client, session_id, info)
    session = await _open(request.registry, session_id, voice if history else None)
    if policy is HistoryPolicy.AFTER_MESSAGE:
        after = await _end_of(session.feed, read_text(params, "afterMessageId"))
        policy = HistoryPolicy.FULL if after is None else policy
    cursor = None if after is None else Cursor(after)
    if cursor is not None:
        cursor.check(session.fold)
    feed, state = session.feed, state_word(session.fold)

    def answer(result: Any) -> dict[str, Any]:
        return {
            **msgspec.to_builtins(result),
            "sessionId": session_id,
            "clientId": info.client_id,
            "historyPolicy": str(policy),
            "clients": feed.presence.clients(you=voice),
            "state": state,
            "seq": voice.joined_at,
        }

    return await join(
        request,
        session,
        voice,
        history=policy is HistoryPolicy.FULL,
        items=_asked_about(session.fold) if policy is HistoryPolicy.PENDING_ONLY else (),
        cursor=cursor,
        loaded=client.v1 and policy is HistoryPolicy.FULL,
        answer=answer,
    )


async def detach(request: Request) -> Any:
    session_id = read_text(request.params, "sessionId")
    await request.registry.detach(request.client, session_id)
    return {"sessionId": session_id, "status": "detached"}


async def _open(registry: SessionRegistry, session_id: str, voice: AttachmentWriter | None) -> ServedSession:
    """Open the session, with the roots it had where it was not open: an attach does not set it up."""
    was_open = registry.find(session_id) is not None
    try:
        session = await registry.open(session_id, voice=voice)
    except ResourceNotFound as error:
        reason = {"sessionId": session_id, "reason": "unknown_session"}
        raise RequestError(ResourceNotFound.code, str(error), data=reason) from None
    if not was_open and session.fold.created is not None:
        session.additional_directories = session.fold.created.additional_directories
    return session


# --- what is replayed ---------------------------------------------------------------------------------


async def _end_of(live: LiveSession, message_id: str) -> int | None:
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


# --- what is asked for --------------------------------------------------------------------------------


def _policy(params: dict[str, Any]) -> HistoryPolicy:
    given = params.get("historyPolicy", HistoryPolicy.FULL)
    try:
        return HistoryPolicy(given)
    except ValueError:
        known = ", ".join(HistoryPolicy)
        raise _wrong(f"`historyPolicy` is one of {known}", "unknown_history_policy") from None


def _after(params: dict[str, Any]) -> int | None:
    if params.get("historyPolicy") != HistoryPolicy.AFTER:
        return None
    seq = params.get("after")
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        raise _wrong("`after` is the number of an event", "bad_cursor")
    return seq


def _client_info(params: dict[str, Any], before: ClientInfo) -> ClientInfo:
    given = params.get("clientId")
    client_id = read_client_id(given)
    if given is not None and client_id is None:
        raise _wrong(f"`clientId` is 1 to {ID_LIMIT} printable ASCII characters", "bad_client_id")
    info = params.get("clientInfo")
    return renamed(before, client_id, info if isinstance(info, dict) else {})


def _wrong(message: str, reason: str) -> RequestError:
    return RequestError(InvalidParams.code, message, data={"reason": reason})
