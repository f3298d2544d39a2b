"""Prompts and cancels."""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon.bridge.upgrade import requests as upward
from antiphon.engine.events import RequestId
from antiphon.engine.prompts import Entry, Outcome
from antiphon.errors import InvalidParams, RequestCancelled, RequestError
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.schema.antiphon.prompts import CancelMeta, Delivery, PromptMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.version import without_ours
from antiphon.schema.wire import Unknown
from antiphon.server.request import Request
from antiphon.server.session import ServedSession

ID_LENGTH = 256


async def prompt(request: Request) -> Any:
    client, registry, inbound = request.client, request.registry, request.inbound
    closing = registry.closing_voice(client, request.params.session_id)
    if closing is not None:
        closing.pending.refuse(inbound, RequestCancelled().to_wire())  # SESS-41
        return None
    voice, session = request.attached(request.params.session_id)
    control = session.control
    wanted = request.upgraded(upward.prompt)
    accepted = session.worker.accepted
    for block in wanted.prompt:
        if not isinstance(block, accepted):
            kind = block.get("type") if isinstance(block, Unknown) else type(block).__struct_config__.tag
            raise InvalidParams(f"content of type {kind!r} is not accepted")  # PROMPT-V2-09, CONT-08
    ours = read_meta(PromptMeta, wanted.meta)
    if ours.delivery is Delivery.AGENT and not session.worker.inserts:  # only a hub leaves it to its agent
        raise InvalidParams("`delivery` 'agent' is not offered")
    outcome = control.submit(
        wanted.prompt,
        delivery=ours.delivery or request.server.offer.busy,
        operation_id=ours.operation_id,
        sender=voice.who,
        meta=without_ours(wanted.meta),  # OBS-01
        request_id=_kept_id(inbound.id),
        policy=client.policy,
    )
    entry = accepted_entry(outcome)
    message_id = entry.message_id
    if entry.settled and await _answered_again(session, voice, entry, inbound):
        return None
    answered = voice.prompted(message_id, inbound)
    session.prompters[message_id] = client
    control.emit(session.fold.prompts.resume())  # to ask again is to want it, too
    control.advance()
    try:
        # The attachment answers, at the place in the stream where the answer is true.
        await asyncio.shield(answered)
    except asyncio.CancelledError:
        if not inbound.cancelled:
            raise  # a lost connection withdraws nothing
        withdrawn = session.fold.prompts.withdraw(message_id)  # PROMPT-V2-33
        control.emit(withdrawn.events)
        if withdrawn.refusal is None:
            raise
        control.take_back(message_id, cancel_turn=client.v1)
        # Taken already, by a v1 client: its turn is cancelled, and answered as that (PROMPT-V1-14).
        control.cancel(message_id=message_id)
        await asyncio.shield(answered)
    finally:
        session.prompters.pop(message_id, None)
    return None


def accepted_entry(outcome: Outcome) -> Entry:
    """Return the entry that a command on the queue led to. Raises `RequestError` for a refusal."""
    if outcome.refusal is not None:
        error = outcome.refusal.to_wire()
        raise RequestError(error.code, error.message, data=error.data)
    assert outcome.entry is not None
    return outcome.entry


def cancel(request: Request) -> None:
    params = request.params
    session = request.registry.find(params.session_id)
    if session is None or session.closing or not request.client.follows(params.session_id):
        return  # PROMPT-V2-43
    if session.subagent_of is not None and not session.cancellable:
        return  # SUB-02
    ours = read_meta(CancelMeta, params.meta)
    if ours.operation_id in session.fold.operations:
        return  # the turn that it was meant for is over, and another one is at work now
    session.control.emit(session.fold.operations.done(ours.operation_id))
    session.control.cancel(message_id=ours.message_id, meta=without_ours(params.meta))


def mcp_message(request: Request) -> None:
    request.client.mcp.notified(request.params)


async def cancel_tool_call(request: Request) -> Any:
    _, session = request.attached(request.params.session_id)
    return _cancelled(session.worker.cancel_tool_call(request.params.tool_call_id))


async def cancel_terminal(request: Request) -> Any:
    _, session = request.attached(request.params.session_id)
    return _cancelled(session.worker.cancel_terminal(request.params.terminal_id))


def _cancelled(done: bool) -> dict[str, Any]:
    if not done:
        # TOOL-V2-14, TERMV2-11: unknown, ended or never offered, it is the client's mistake, not a missing
        # method.
        raise InvalidParams("this cannot be cancelled")
    return {}


async def _answered_again(
    session: ServedSession, voice: AttachmentWriter, entry: Entry, inbound: Inbound
) -> bool:
    """Give the outcome of a prompt that was settled before; not yet possible where that is the end of a turn
    that is open."""
    await session.feed.durable()  # the fold runs ahead of the store
    over = not session.fold.turns.took(entry.became or entry.message_id)
    if over:
        await voice.caught_up()  # invariant 3: nothing of the turn comes behind its end
    entry = session.fold.prompts.get(entry.message_id) or entry
    return voice.pending.answer_again(entry, inbound, over=over)


def _kept_id(id: RequestId) -> RequestId:
    """A request id as the journal keeps it. A long string is left out: cut, it could be another request's."""
    return None if isinstance(id, str) and len(id) > ID_LENGTH else id
