"""Prompts and cancels on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from antiphon.bridge import requests as upward
from antiphon.engine.events import Delivery
from antiphon.engine.prompt_states import PromptState
from antiphon.engine.prompts import Entry
from antiphon.errors import ErrorObject, InvalidParams, RequestCancelled, RequestError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.schema.version import META_KEY
from antiphon.schema.wire import Unknown

if TYPE_CHECKING:
    from antiphon.agent.link import Handlers, Link


def handlers(link: Link) -> Handlers:
    async def prompt(params: Any, inbound: Inbound) -> Any:
        voice, session = link.voice(params.session_id)
        wanted: v2.PromptRequest = upward.prompt(params) if link.v1 else params
        for block in wanted.prompt:
            if not isinstance(block, link.agent.accepted):
                kind = block.get("type") if isinstance(block, Unknown) else type(block).__struct_config__.tag
                raise InvalidParams(f"content of type {kind!r} is not accepted")  # PROMPT-V2-09, CONT-08
        ours = (wanted.meta or {}).get(META_KEY)
        ours = ours if isinstance(ours, dict) else {}
        delivery = _delivery(ours.get("delivery")) or link.agent.busy
        theirs = {key: value for key, value in (wanted.meta or {}).items() if key != META_KEY}
        outcome = session.submit(
            wanted.prompt,
            delivery=delivery,
            operation_id=operation_id_of(ours),
            meta=theirs or None,  # OBS-01
        )
        if outcome.refusal is not None or outcome.entry is None:
            refused = InvalidParams().to_wire() if outcome.refusal is None else outcome.refusal.to_wire()
            raise RequestError(refused.code, refused.message, data=refused.data)
        message_id = outcome.entry.message_id
        if outcome.repeated and outcome.entry.state is not PromptState.QUEUED:
            await session.live.durable()  # the fold runs ahead of the store
            entry = session.fold.prompts.get(message_id) or outcome.entry
            if entry.state is not PromptState.ACCEPTED:
                _fail(entry.error or RequestCancelled().to_wire())
            shown = session.fold.prompts.shown_as(message_id)
            inserted = voice.writer.inserted(shown)
            if inserted is not None:
                return inserted
            if not session.fold.turns.took(shown):
                return _v1_end(entry)
        answered = voice.prompted(message_id, inbound)
        session.prompters[message_id] = link
        session.emit(session.fold.prompts.resume())  # to ask again is to want it, too
        session.advance()
        try:
            # The voice answers, at the place in the stream where the answer is true.
            await asyncio.shield(answered)
        except asyncio.CancelledError:
            if not inbound.cancelled:
                raise  # a lost connection withdraws nothing
            withdrawn = session.fold.prompts.withdraw(message_id)  # PROMPT-V2-33
            session.emit(withdrawn.events)
            if withdrawn.refusal is None:
                raise
            # Taken already, by a v1 client: its turn is cancelled, and answered as that (PROMPT-V1-14).
            session.cancel(message_id=message_id)
            await asyncio.shield(answered)
        finally:
            session.prompters.pop(message_id, None)
        return None

    return {"session/prompt": prompt}


def cancel(link: Link) -> Callable[[Any], None]:
    """What `session/cancel` does."""

    def cancel(params: Any) -> None:
        voice = link.voices.get(params.session_id)
        session = link.agent.find(params.session_id)
        if voice is None or session is None:
            return  # PROMPT-V2-43
        ours = (params.meta or {}).get(META_KEY)
        voice.cancelled = session.fold.turn is not None or bool(session.fold.queue)
        session.cancel(message_id=ours.get("messageId") if isinstance(ours, dict) else None)

    return cancel


def _v1_end(entry: Entry) -> v1.PromptResponse:
    """How the turn of a prompt ended, for who asks again; a failure is one again (invariant 4)."""
    if entry.error is not None:
        _fail(entry.error)
    try:
        return v1.PromptResponse(stop_reason=v1.StopReason(entry.stop_reason or "end_turn"))
    except ValueError:
        return v1.PromptResponse(stop_reason=v1.StopReason.END_TURN)  # v1 has no word for it


def _fail(error: ErrorObject) -> NoReturn:
    raise RequestError(error.code, error.message, data=error.data)


def operation_id_of(given: dict[str, Any]) -> str | None:
    found = given.get("operationId")
    if found is not None and not isinstance(found, str):
        raise InvalidParams("`operationId` must be a string")
    return found


def _delivery(asked: object) -> Delivery | None:
    try:
        return None if asked is None else Delivery(str(asked))
    except ValueError:
        raise InvalidParams(f"{asked!r} is no way to deliver a prompt") from None
