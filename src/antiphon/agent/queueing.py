"""The queue on the wire: prompts that outlive their request, after the public draft, under our own prefix.

`_antiphon/inject`, `revoke_inject`, `replace_inject`, `move_inject`, `list_inject` and `resume_queue`. An
entry's id is its future message id.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Raw

from antiphon.agent.prompting import operation_id_of
from antiphon.agent.session import AgentSession
from antiphon.engine.events import Delivery
from antiphon.engine.prompts import Entry, Outcome
from antiphon.engine.reading import CONTENT
from antiphon.errors import InvalidParams, RequestError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema.repair import Malformed
from antiphon.schema.wire import Unknown

Find = Callable[[str], AgentSession]
MODES = {"queue": Delivery.QUEUE, "steer": Delivery.STEER}


def handlers(find: Find) -> dict[str, Callable[[Any, Inbound], Awaitable[Any]]]:
    """The handlers of the queue's methods; `find` gives the session that a client is attached to."""

    async def inject(params: Any, inbound: Inbound) -> Any:
        session = find(_text(params, "sessionId"))
        mode = params.get("mode", "queue")
        if not isinstance(mode, str) or mode not in MODES:
            raise InvalidParams(f"`mode` is one of {', '.join(MODES)}")
        outcome = session.submit(
            _content(params), held=False, delivery=MODES[mode], operation_id=operation_id_of(params)
        )
        session.advance()
        return await _settle(session, outcome)

    async def replace(params: Any, inbound: Inbound) -> Any:
        session = find(_text(params, "sessionId"))
        outcome = session.fold.prompts.edit(_text(params, "messageId"), _content(params))
        return await _apply(session, outcome)

    async def revoke(params: Any, inbound: Inbound) -> Any:
        session = find(_text(params, "sessionId"))
        await _apply(session, session.fold.prompts.withdraw(_text(params, "messageId")))
        return {}

    async def move(params: Any, inbound: Inbound) -> Any:
        session = find(_text(params, "sessionId"))
        before = None if params.get("before") is None else _text(params, "before")
        return await _apply(session, session.fold.prompts.move(_text(params, "messageId"), before=before))

    async def list_all(params: Any, inbound: Inbound) -> Any:
        session = find(_text(params, "sessionId"))
        entries = [_shown(entry) for entry in session.fold.queue]
        return {"entries": entries, "paused": session.fold.prompts.paused}

    async def resume(params: Any, inbound: Inbound) -> Any:
        session = find(_text(params, "sessionId"))
        session.emit(session.fold.prompts.resume())
        session.advance()
        return {}

    return {
        "_antiphon/inject": inject,
        "_antiphon/replace_inject": replace,
        "_antiphon/revoke_inject": revoke,
        "_antiphon/move_inject": move,
        "_antiphon/list_inject": list_all,
        "_antiphon/resume_queue": resume,
    }


async def _apply(session: AgentSession, outcome: Outcome) -> dict[str, Any]:
    session.emit(outcome.events)
    return await _settle(session, outcome)


async def _settle(session: AgentSession, outcome: Outcome) -> dict[str, Any]:
    """The answer, and a refusal too, tells of what is in the store (invariant 1)."""
    await session.live.durable()
    if outcome.refusal is not None or outcome.entry is None:
        assert outcome.refusal is not None
        error = outcome.refusal.to_wire()
        raise RequestError(error.code, error.message, data=error.data)
    return {"messageId": outcome.entry.message_id}


def _shown(entry: Entry) -> dict[str, Any]:
    content = msgspec.json.decode(entry.raw_content)
    return {"messageId": entry.message_id, "mode": str(entry.delivery), "content": content}


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
