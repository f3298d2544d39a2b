"""The queue on the wire: prompts that outlive their request, after the public draft, under our own prefix.

`_antiphon/inject`, `revoke_inject`, `replace_inject`, `move_inject`, `list_inject` and `resume_queue`. An
entry's id is its future message id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Raw

from antiphon.agent.operations import operation_id_of
from antiphon.agent.permits import Permit
from antiphon.agent.session import AgentSession
from antiphon.engine.events import Delivery
from antiphon.engine.prompts import Outcome
from antiphon.engine.reading import CONTENT
from antiphon.errors import InvalidParams, RequestError
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.voice import Voice
from antiphon.live.waiting import shown_entry
from antiphon.schema.repair import Malformed
from antiphon.schema.wire import Unknown

Find = Callable[[str], tuple[Voice, AgentSession]]
MODES = {"queue": Delivery.QUEUE, "steer": Delivery.STEER, "agent": Delivery.AGENT}
"""The last one where a hub leaves it to its agent."""


def handlers(find: Find, permit: Permit) -> dict[str, Callable[[Any, Inbound], Awaitable[Any]]]:
    """The handlers of the queue's methods. `find` gives a client's attachment to a session, and the session;
    `permit` is what the client may do."""

    async def inject(params: Any, inbound: Inbound) -> Any:
        voice, session = find(_text(params, "sessionId"))
        mode = params.get("mode", "queue")
        modes = [*MODES] if session.leaves_it_to_agent else [*MODES][:2]
        if not isinstance(mode, str) or mode not in modes:
            raise InvalidParams(f"`mode` is one of {', '.join(modes)}")
        outcome = session.submit(
            _content(params),
            held=False,
            delivery=MODES[mode],
            operation_id=operation_id_of(params),
            sender=voice.who,
            permit=permit,
        )
        session.advance()
        return await _settle(session, outcome)

    async def replace(params: Any, inbound: Inbound) -> Any:
        _, session = find(_text(params, "sessionId"))
        content = _content(params)

        def edit(message_id: str) -> Outcome:
            outcome = session.fold.prompts.edit(message_id, content)
            if outcome.events:
                permit.queues(session, message_id, len(content))
            return outcome

        return await _once(session, params, edit)

    async def revoke(params: Any, inbound: Inbound) -> Any:
        _, session = find(_text(params, "sessionId"))
        asked = session.take_back(_text(params, "messageId"))
        if asked is not None:
            await asyncio.wait([asked])
        await _once(session, params, session.fold.prompts.withdraw)
        return {}

    async def move(params: Any, inbound: Inbound) -> Any:
        _, session = find(_text(params, "sessionId"))
        before = None if params.get("before") is None else _text(params, "before")
        return await _once(session, params, lambda id: session.fold.prompts.move(id, before=before))

    async def list_all(params: Any, inbound: Inbound) -> Any:
        _, session = find(_text(params, "sessionId"))
        entries = [shown_entry(entry) for entry in session.fold.queue]
        return {"entries": entries, "paused": session.fold.prompts.paused}

    async def resume(params: Any, inbound: Inbound) -> Any:
        _, session = find(_text(params, "sessionId"))
        operation_id = operation_id_of(params)
        if operation_id not in session.fold.operations:
            session.emit((*session.fold.prompts.resume(), *session.fold.operations.done(operation_id)))
            session.advance()
        await session.live.durable()
        return {}

    return {
        "_antiphon/inject": inject,
        "_antiphon/replace_inject": replace,
        "_antiphon/revoke_inject": revoke,
        "_antiphon/move_inject": move,
        "_antiphon/list_inject": list_all,
        "_antiphon/resume_queue": resume,
    }


async def _once(session: AgentSession, params: Any, change: Callable[[str], Outcome]) -> dict[str, Any]:
    """Do something to an entry, unless it was done before under the same operation id."""
    message_id, operation_id = _text(params, "messageId"), operation_id_of(params)
    if operation_id in session.fold.operations:
        await session.live.durable()
        return {"messageId": message_id}
    outcome = change(message_id)
    if outcome.refusal is None:
        session.emit((*outcome.events, *session.fold.operations.done(operation_id)))
    return await _settle(session, outcome)


async def _settle(session: AgentSession, outcome: Outcome) -> dict[str, Any]:
    """The answer, and a refusal too, tells of what is in the store (invariant 1)."""
    await session.live.durable()
    if outcome.refusal is not None or outcome.entry is None:
        assert outcome.refusal is not None
        error = outcome.refusal.to_wire()
        raise RequestError(error.code, error.message, data=error.data)
    return {"messageId": outcome.entry.message_id}


def _text(params: Any, key: str) -> str:
    value = params.get(key) if isinstance(params, dict) else None
    if not isinstance(value, str):
        raise InvalidParams(f"`{key}` must be a string")
    return value


def _content(params: Any) -> Raw:
    raw = Raw(msgspec.json.encode(params.get("content")))
    try:
        blocks = CONTENT.read(raw)
    except Malformed as error:
        raise InvalidParams(str(error)) from None
    if any(isinstance(block, Unknown) for block in blocks):
        raise InvalidParams("a content block of an unknown type")
    return raw
