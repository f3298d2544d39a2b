"""`_antiphon/annotate` and `_antiphon/remove_annotation`: reactions and notes of clients on messages."""

from __future__ import annotations

from antiphon.engine.transcript import MessageType
from antiphon.engine.who import clean_who
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.schema.antiphon import messages as wire
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.prompts import Done
from antiphon.server.control.operations import Annotate, RemoveAnnotation
from antiphon.server.request import Request


async def annotate(request: Request) -> wire.AnnotateResponse:
    params: wire.AnnotateRequest = request.params
    voice, session = await request.attached(params.session_id)
    message_id, role = params.message_id, None if params.role is None else MessageType(params.role)
    named = voice.writer.original_of(message_id)
    if named is not None and role in (None, named[0]):
        role, message_id = MessageType(named[0]), named[1]
    asked = Annotate(
        message_id=message_id,
        role=role,
        kind=params.kind,
        value=params.value,
        by=_who(request, voice, params.by),
        operation_id=params.operation_id,
    )
    annotation_id = await request.perform(session, asked)
    return wire.AnnotateResponse(annotation_id=annotation_id)


async def remove(request: Request) -> Done:
    params: wire.RemoveAnnotationRequest = request.params
    voice, session = await request.attached(params.session_id)
    by = _who(request, voice, params.by)
    asked = RemoveAnnotation(annotation_id=params.annotation_id, by=by, operation_id=params.operation_id)
    await request.perform(session, asked)
    return Done()


def _who(request: Request, voice: AttachmentWriter, by: Who | None) -> Who:
    """Return the author. A hub names its own client, and the agent behind it believes the hub."""
    named = clean_who(by) if request.server.trusts_named_authors else None
    return named or voice.who or request.client.info.who
