"""The queue: prompts that outlive their request, after the public draft, under our own prefix.

`_antiphon/inject`, `revoke_inject`, `replace_inject`, `move_inject`, `list_inject` and `resume_queue`. An
entry's id is its future message id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from antiphon.engine.json_values import CONTENT, encode
from antiphon.engine.prompts import Outcome
from antiphon.errors import InvalidParams
from antiphon.live.queue_feed import shown_entry
from antiphon.schema.antiphon import prompts as wire
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.repair import Malformed
from antiphon.schema.wire import Unknown
from antiphon.server.methods.prompts import accepted_entry
from antiphon.server.request import Request
from antiphon.server.session import ServedSession


async def inject(request: Request) -> wire.InjectResponse:
    params: wire.InjectRequest = request.params
    voice, session = request.attached(params.session_id)
    mode = params.mode or Delivery.QUEUE
    # Only a hub leaves it to its agent.
    modes = [Delivery.QUEUE, Delivery.STEER, *([Delivery.AGENT] if session.worker.inserts else [])]
    if mode not in modes:
        raise InvalidParams(f"`mode` must be one of {', '.join(modes)}, got {str(mode)!r}")
    outcome = session.control.submit(
        _content(params.content),
        held=False,
        delivery=mode,
        operation_id=params.operation_id,
        sender=voice.who,
        policy=request.client.policy,
    )
    session.control.advance()
    return await _respond(session, outcome)


async def replace(request: Request) -> wire.InjectResponse:
    params: wire.ReplaceInjectRequest = request.params
    _, session = request.attached(params.session_id)
    content = _content(params.content)

    def edit(message_id: str) -> Outcome:
        outcome = session.fold.prompts.edit(message_id, content)
        if outcome.events:
            request.client.policy.queues(session, message_id, len(content))
        return outcome

    return await _once(session, params, edit)


async def revoke(request: Request) -> wire.Done:
    params: wire.RevokeInjectRequest = request.params
    _, session = request.attached(params.session_id)
    asked = session.control.take_back(params.message_id)
    if asked is not None:
        await asyncio.wait([asked])
    await _once(session, params, session.fold.prompts.withdraw)
    return wire.Done()


async def move(request: Request) -> wire.InjectResponse:
    params: wire.MoveInjectRequest = request.params
    _, session = request.attached(params.session_id)
    return await _once(session, params, lambda id: session.fold.prompts.move(id, before=params.before))


async def list_queue(request: Request) -> wire.ListInjectResponse:
    params: wire.ListInjectRequest = request.params
    _, session = request.attached(params.session_id)
    entries = [shown_entry(entry) for entry in session.fold.queue]
    return wire.ListInjectResponse(entries=entries, paused=session.fold.prompts.paused)


async def resume(request: Request) -> wire.Done:
    params: wire.ResumeQueueRequest = request.params
    _, session = request.attached(params.session_id)
    operation_id = params.operation_id
    if operation_id not in session.fold.operations:
        session.control.emit((*session.fold.prompts.resume(), *session.fold.operations.done(operation_id)))
        session.control.advance()
    await session.feed.durable()
    return wire.Done()


async def _once(
    session: ServedSession, params: wire.QueuedPromptRequest, change: Callable[[str], Outcome]
) -> wire.InjectResponse:
    """Change an entry, unless that was done before under the same operation id."""
    message_id, operation_id = params.message_id, params.operation_id
    if operation_id in session.fold.operations:
        await session.feed.durable()
        return wire.InjectResponse(message_id=message_id)
    outcome = change(message_id)
    if outcome.refusal is None:
        session.control.emit((*outcome.events, *session.fold.operations.done(operation_id)))
    return await _respond(session, outcome)


async def _respond(session: ServedSession, outcome: Outcome) -> wire.InjectResponse:
    """Return the response once the outcome is in the store, also a refusal (invariant 1)."""
    await session.feed.durable()
    return wire.InjectResponse(message_id=accepted_entry(outcome).message_id)


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
