"""`_antiphon/annotate` and `_antiphon/remove_annotation`: reactions and notes of clients on messages."""

from __future__ import annotations

import secrets
from hashlib import blake2b

from antiphon.engine.annotations import MOST_PER_MESSAGE, MOST_PER_SESSION, Annotation, check_value
from antiphon.engine.events import Updated
from antiphon.engine.transcript import Message, MessageType
from antiphon.engine.who import clean_who
from antiphon.errors import Forbidden, InvalidParams, RequestError, ResourceNotFound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.live.presence import rfc3339
from antiphon.schema.antiphon import messages as wire
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.prompts import Done
from antiphon.server.request import Request
from antiphon.server.session import ServedSession

LIMITED = -32004


async def annotate(request: Request) -> wire.AnnotateResponse:
    params: wire.AnnotateRequest = request.params
    voice, session = request.attached(params.session_id)
    operation_id = params.operation_id
    id = f"ann_{secrets.token_hex(12)}" if operation_id is None else annotation_id(operation_id)
    if operation_id is None or operation_id not in session.fold.operations:
        made = _made(session, voice, params, id, _who(request, voice, params.by))
        id = made.id
        if session.fold.annotations.get(id) is None:
            _check_room(session, made)
            update = Updated.of(made.materialize())
            session.control.emit((update, *session.fold.operations.done(operation_id)))
            session.worker.annotated(made, removed=False)
    await session.feed.durable()  # invariant 1
    return wire.AnnotateResponse(annotation_id=id)


async def remove(request: Request) -> Done:
    params: wire.RemoveAnnotationRequest = request.params
    voice, session = request.attached(params.session_id)
    operation_id = params.operation_id
    if operation_id is None or operation_id not in session.fold.operations:
        found = session.fold.annotations.get(params.annotation_id)
        if found is None:
            raise ResourceNotFound("no such annotation", data={"reason": "unknown_annotation_id"})
        if found.by.client_id != _who(request, voice, params.by).client_id:
            raise Forbidden
        session.control.emit((Updated.of(found.removal()), *session.fold.operations.done(operation_id)))
        session.worker.annotated(found, removed=True)
    await session.feed.durable()
    return Done()


def annotation_id(operation_id: str) -> str:
    """The id of the annotation that is made under an operation id: a copy of the request gets the same."""
    return f"ann_{blake2b(operation_id.encode('utf-8', 'surrogatepass'), digest_size=12).hexdigest()}"


def _made(
    session: ServedSession, voice: AttachmentWriter, params: wire.AnnotateRequest, id: str, by: Who
) -> Annotation:
    """Return the requested annotation, or the same reaction of this client, if it is there already."""
    kind = params.kind
    try:
        value = check_value(kind, params.value)
    except ValueError as error:
        raise InvalidParams(str(error)) from None
    message = _message(session, voice, params)
    if kind is wire.AnnotationKind.REACTION:
        for known in message.annotations:
            if (known.kind, known.value, known.by.client_id) == (kind, value, by.client_id):
                return known
    return Annotation(
        id,
        message_id=message.id,
        role=message.type,
        kind=kind,
        value=value,
        by=by,
        at=rfc3339(session.feed.now()),
    )


def _message(session: ServedSession, voice: AttachmentWriter, params: wire.AnnotateRequest) -> Message:
    message_id, role = params.message_id, None if params.role is None else MessageType(params.role)
    named = voice.writer.original_of(message_id)
    if named is not None and role in (None, named[0]):
        role, message_id = MessageType(named[0]), named[1]
    fold = session.fold
    found = fold.transcript.find(message_id) if role is None else fold.message(role, message_id)
    if found is None:
        raise ResourceNotFound("no such message", data={"reason": "unknown_message_id"})
    return found


def _check_room(session: ServedSession, made: Annotation) -> None:
    message = session.fold.message(made.role, made.message_id)
    of_message = 0 if message is None else len(message.annotated)
    if of_message >= MOST_PER_MESSAGE or len(session.fold.annotations) >= MOST_PER_SESSION:
        data = {"reason": "limit", "limit": "annotations"}
        raise RequestError(LIMITED, "Too many: annotations", data=data)


def _who(request: Request, voice: AttachmentWriter, by: Who | None) -> Who:
    """Return the author. A hub names its own client, and the agent behind it believes the hub."""
    named = clean_who(by) if request.server.trusts_named_authors else None
    return named or voice.who or request.client.info.who
