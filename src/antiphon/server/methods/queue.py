"""The queue: prompts that outlive their request, after the public draft, under our own prefix.

`_antiphon/inject`, `revoke_inject`, `replace_inject`, `move_inject`, `list_inject` and `resume_queue`. An
entry's id is its future message id.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from antiphon.engine.json_values import CONTENT, encode
from antiphon.errors import InvalidParams
from antiphon.live.queue_feed import shown_entry
from antiphon.schema.antiphon import prompts as wire
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.repair import Malformed
from antiphon.schema.wire import Unknown
from antiphon.server.control.operations import Edit, Move, ResumeQueue, Revoke, Submit
from antiphon.server.ids import new_id
from antiphon.server.request import Request


async def inject(request: Request) -> wire.InjectResponse:
    params: wire.InjectRequest = request.params
    voice, session = await request.attached(params.session_id)
    control, mode = session.control, params.mode or Delivery.QUEUE
    # Only a hub leaves it to its agent.
    modes = [Delivery.QUEUE, Delivery.STEER, *([Delivery.AGENT] if control.inserts else [])]
    if mode not in modes:
        raise InvalidParams(f"`mode` must be one of {', '.join(modes)}, got {str(mode)!r}")
    asked = Submit(
        message_id=new_id("msg"),
        content=_content(params.content),
        held=False,
        delivery=mode,
        operation_id=params.operation_id,
        sender=voice.who,
    )
    return wire.InjectResponse(message_id=await request.perform(session, asked))


async def replace(request: Request) -> wire.InjectResponse:
    params: wire.ReplaceInjectRequest = request.params
    _, session = await request.attached(params.session_id)
    asked = Edit(
        message_id=params.message_id, content=_content(params.content), operation_id=params.operation_id
    )
    message_id = await request.perform(session, asked)
    return wire.InjectResponse(message_id=message_id)


async def revoke(request: Request) -> wire.Done:
    params: wire.RevokeInjectRequest = request.params
    _, session = await request.attached(params.session_id)
    asked = Revoke(message_id=params.message_id, operation_id=params.operation_id)
    await request.perform(session, asked)
    return wire.Done()


async def move(request: Request) -> wire.InjectResponse:
    params: wire.MoveInjectRequest = request.params
    _, session = await request.attached(params.session_id)
    asked = Move(message_id=params.message_id, before=params.before, operation_id=params.operation_id)
    message_id = await request.perform(session, asked)
    return wire.InjectResponse(message_id=message_id)


async def list_queue(request: Request) -> wire.ListInjectResponse:
    params: wire.ListInjectRequest = request.params
    _, session = await request.attached(params.session_id)
    entries = [shown_entry(entry) for entry in session.fold.queue]
    return wire.ListInjectResponse(entries=entries, paused=session.fold.prompts.paused)


async def resume(request: Request) -> wire.Done:
    params: wire.ResumeQueueRequest = request.params
    _, session = await request.attached(params.session_id)
    await request.perform(session, ResumeQueue(operation_id=params.operation_id))
    return wire.Done()


def _content(content: list[Any]) -> Raw:
    """Check content blocks, and return them as they were sent, with the fields that are not known here."""
    raw = Raw(encode(content))
    try:
        blocks = CONTENT.read(raw)
    except Malformed as error:
        raise InvalidParams(str(error.under(".content"))) from None
    for block in blocks:
        if isinstance(block, Unknown):
            raise InvalidParams(f"Content of the unknown type {block.get('type')!r} - at `$.content`")
    return raw
