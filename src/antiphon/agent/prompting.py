"""Prompts and cancels on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antiphon.agent.operations import operation_id_of
from antiphon.bridge import requests as upward
from antiphon.engine.events import Delivery, RequestId
from antiphon.engine.prompts import Entry
from antiphon.errors import InvalidParams, RequestCancelled, RequestError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.schema.version import META_KEY, ours_in, without_ours
from antiphon.schema.wire import Unknown

if TYPE_CHECKING:
    from antiphon.agent.link import Handlers, Link
    from antiphon.agent.session import AgentSession
    from antiphon.live.voice import Voice

ID_LENGTH = 256


def handlers(link: Link) -> Handlers:
    async def prompt(params: Any, inbound: Inbound) -> Any:
        closing = link.closing_voice(params.session_id)
        if closing is not None:
            closing.owed.refuse(inbound, RequestCancelled().to_wire())  # SESS-41
            return None
        voice, session = link.voice(params.session_id)
        wanted: v2.PromptRequest = upward.prompt(params) if link.v1 else params
        accepted = link.agent.accepted_in(session)
        for block in wanted.prompt:
            if not isinstance(block, accepted):
                kind = block.get("type") if isinstance(block, Unknown) else type(block).__struct_config__.tag
                raise InvalidParams(f"content of type {kind!r} is not accepted")  # PROMPT-V2-09, CONT-08
        ours = ours_in(wanted.meta)
        delivery = _delivery(ours.get("delivery"), session) or link.agent.busy
        theirs = {key: value for key, value in (wanted.meta or {}).items() if key != META_KEY}
        outcome = session.submit(
            wanted.prompt,
            delivery=delivery,
            operation_id=operation_id_of(ours),
            sender=voice.who,
            meta=theirs or None,  # OBS-01
            request_id=_kept_id(inbound.id),
            permit=link.permit,
        )
        if outcome.refusal is not None or outcome.entry is None:
            refused = InvalidParams().to_wire() if outcome.refusal is None else outcome.refusal.to_wire()
            raise RequestError(refused.code, refused.message, data=refused.data)
        message_id = outcome.entry.message_id
        if outcome.entry.settled and await _answered_again(session, voice, outcome.entry, inbound):
            return None
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
            session.take_back(message_id, cancel_turn=link.v1)
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
        session = link.agent.find(params.session_id)
        if session is None or session.closing or not link.follows(params.session_id):
            return  # PROMPT-V2-43
        ours = ours_in(params.meta)
        operation_id = operation_id_of(ours)
        if operation_id in session.fold.operations:
            return  # what it was meant for is over, and what is at work now is something else
        session.emit(session.fold.operations.done(operation_id))
        session.cancel(message_id=ours.get("messageId"), meta=without_ours(params.meta))

    return cancel


async def _answered_again(session: AgentSession, voice: Voice, entry: Entry, inbound: Inbound) -> bool:
    """Give the outcome of a prompt that was settled before; not yet possible where that is the end of a turn
    that is open."""
    await session.live.durable()  # the fold runs ahead of the store
    over = not session.fold.turns.took(entry.became or entry.message_id)
    if over:
        await voice.caught_up()  # invariant 3: nothing of the turn comes behind its end
    entry = session.fold.prompts.get(entry.message_id) or entry
    return voice.owed.answer_again(entry, inbound, over=over)


def _kept_id(id: RequestId) -> RequestId:
    """A request id as the journal keeps it. A long string is left out: cut, it could be another request's."""
    return None if isinstance(id, str) and len(id) > ID_LENGTH else id


def _delivery(asked: object, session: AgentSession) -> Delivery | None:
    """The delivery that a prompt asks for. Only a hub offers to leave it to its agent."""
    if asked is None:
        return None
    if asked not in tuple(Delivery) or (asked == Delivery.AGENT and not session.leaves_it_to_agent):
        raise InvalidParams(f"{asked!r} is no way to deliver a prompt")
    return Delivery(str(asked))
