"""The queue: prompts that outlive their request, after the public draft, under our own prefix.

`_antiphon/inject`, `revoke_inject`, `replace_inject`, `move_inject`, `list_inject` and `resume_queue`. An
entry's id is its future message id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from antiphon.engine.events import Delivery
from antiphon.engine.json_values import CONTENT
from antiphon.engine.prompts import Outcome
from antiphon.errors import InvalidParams, RequestError
from antiphon.live.queue_feed import shown_entry
from antiphon.schema.repair import Malformed
from antiphon.schema.wire import Unknown
from antiphon.server.params import operation_id_of, read_text
from antiphon.server.request import Request
from antiphon.server.session import ServedSession

MODES = {"queue": Delivery.QUEUE, "steer": Delivery.STEER, "agent": Delivery.AGENT}
"""The last one only where a hub leaves it to its agent."""


async def inject(request: Request) -> Any:
    params = request.params
    voice, session = request.attached(read_text(params, "sessionId"))
    mode = params.get("mode", "queue")
    modes = [*MODES] if session.worker.inserts else [*MODES][:2]
    if not isinstance(mode, str) or mode not in modes:
        raise InvalidParams(f"`mode` is one of {', '.join(modes)}")
    outcome = session.control.submit(
        _content(params),
        held=False,
        delivery=MODES[mode],
        operation_id=operation_id_of(params),
        sender=voice.who,
        policy=request.client.policy,
    )
    session.control.advance()
    return await _settle(session, outcome)


async def replace(request: Request) -> Any:
    params = request.params
    _, session = request.attached(read_text(params, "sessionId"))
    content = _content(params)

    def edit(message_id: str) -> Outcome:
        outcome = session.fold.prompts.edit(message_id, content)
        if outcome.events:
            request.client.policy.queues(session, message_id, len(content))
        return outcome

    return await _once(session, params, edit)


async def revoke(request: Request) -> Any:
    params = request.params
    _, session = request.attached(read_text(params, "sessionId"))
    asked = session.control.take_back(read_text(params, "messageId"))
    if asked is not None:
        await asyncio.wait([asked])
    await _once(session, params, session.fold.prompts.withdraw)
    return {}


async def move(request: Request) -> Any:
    params = request.params
    _, session = request.attached(read_text(params, "sessionId"))
    before = None if params.get("before") is None else read_text(params, "before")
    return await _once(session, params, lambda id: session.fold.prompts.move(id, before=before))


async def list_queue(request: Request) -> Any:
    params = request.params
    _, session = request.attached(read_text(params, "sessionId"))
    entries = [shown_entry(entry) for entry in session.fold.queue]
    return {"entries": entries, "paused": session.fold.prompts.paused}


async def resume(request: Request) -> Any:
    params = request.params
    _, session = request.attached(read_text(params, "sessionId"))
    operation_id = operation_id_of(params)
    if operation_id not in session.fold.operations:
        session.control.emit((*session.fold.prompts.resume(), *session.fold.operations.done(operation_id)))
        session.control.advance()
    await session.feed.durable()
    return {}


async def _once(session: ServedSession, params: Any, change: Callable[[str], Outcome]) -> dict[str, Any]:
    """Do something to an entry, unless it was done before under the same operation id."""
    message_id, operation_id = read_text(params, "messageId"), operation_id_of(params)
    if operation_id in session.fold.operations:
        await session.feed.durable()
        return {"messageId": message_id}
    outcome = change(message_id)
    if outcome.refusal is None:
        session.control.emit((*outcome.events, *session.fold.operations.done(operation_id)))
    return await _settle(session, outcome)


async def _settle(session: ServedSession, outcome: Outcome) -> dict[str, Any]:
    """The answer, and a refusal too, tells of what is in the store (invariant 1)."""
    await session.feed.durable()
    if outcome.refusal is not None or outcome.entry is None:
        assert outcome.refusal is not None
        error = outcome.refusal.to_wire()
        raise RequestError(error.code, error.message, data=error.data)
    return {"messageId": outcome.entry.message_id}


def _content(params: Any) -> Raw:
    raw = Raw(msgspec.json.encode(params.get("content")))
    try:
        blocks = CONTENT.read(raw)
    except Malformed as error:
        raise InvalidParams(str(error)) from None
    if any(isinstance(block, Unknown) for block in blocks):
        raise InvalidParams("a content block of an unknown type")
    return raw
