"""Prompts and cancels."""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon.bridge.upgrade import requests as upward
from antiphon.engine.events import RequestId
from antiphon.engine.prompts import raw_content
from antiphon.errors import AntiphonError, InvalidParams, RequestCancelled, StoreError
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.schema.antiphon.prompts import CancelMeta, Delivery, PromptMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.version import without_ours
from antiphon.server.control.operations import Abandon, Cancel, CancelTerminal, CancelToolCall, Submit
from antiphon.server.distant.session import AnySession
from antiphon.server.ids import new_id
from antiphon.server.request import Request

ID_LENGTH = 256


async def prompt(request: Request) -> Any:
    client, registry, inbound = request.client, request.registry, request.inbound
    closing = registry.attachments.closing_voice(client, request.params.session_id)
    if closing is not None:
        closing.pending.refuse(inbound, RequestCancelled().to_wire())  # SESS-41
        return None
    voice, session = await request.attached(request.params.session_id)
    control = session.control
    wanted = request.upgraded(upward.prompt)
    control.check_content(wanted.prompt)
    ours = read_meta(PromptMeta, wanted.meta)
    if ours.delivery is Delivery.AGENT and not control.inserts:  # only a hub leaves it to its agent
        raise InvalidParams("`delivery` 'agent' is not offered")
    known = None if ours.operation_id is None else session.fold.prompts.of_operation(ours.operation_id)
    message_id = new_id("msg") if known is None else known.message_id
    asked = Submit(
        message_id=message_id,
        content=raw_content(wanted.prompt),
        delivery=ours.delivery or request.server.offer.busy,
        operation_id=ours.operation_id,
        sender=voice.who,
        meta=without_ours(wanted.meta),  # OBS-01
        request_id=_kept_id(inbound.id),
    )
    if known is not None and known.settled and await _answered_again(request, session, voice, message_id):
        return None
    # The attachment answers, at the place in the stream where the answer is true.
    answered = voice.prompted(message_id, inbound)
    session.prompters[message_id] = client
    found = message_id
    try:
        found = await request.perform(session, asked)
        if found != message_id:  # another server had this operation before
            voice.pending.forget(message_id, inbound)
            session = registry.serving(session.id) or session
            if await _answered_again(request, session, voice, found):
                return None
            answered = voice.prompted(found, inbound)
        await asyncio.shield(answered)
    except asyncio.CancelledError:
        if not inbound.cancelled:
            raise  # a lost connection withdraws nothing
        abandon = Abandon(message_id=found, cancel_turn=client.v1)
        if await request.perform(session, abandon):
            voice.pending.forget(found, inbound)  # no event says that it was withdrawn if it was never queued
            raise
        # Taken already, by a v1 client: its turn is cancelled, and answered as that (PROMPT-V1-14).
        await asyncio.shield(answered)
    except AntiphonError:
        voice.pending.forget(message_id, inbound)
        raise
    finally:
        session.prompters.pop(message_id, None)
    return None


def cancel(request: Request) -> None:
    params = request.params
    session = request.registry.serving(params.session_id)
    if not request.client.follows(params.session_id) or (session is not None and session.closing):
        return  # PROMPT-V2-43
    if session is not None and session.subagent_of is not None and not session.cancellable:
        return  # SUB-02
    ours = read_meta(CancelMeta, params.meta)
    asked = Cancel(message_id=ours.message_id, operation_id=ours.operation_id, meta=without_ours(params.meta))
    request.registry.distant.cancel(params.session_id, asked, request.client.policy)


def mcp_message(request: Request) -> None:
    request.client.mcp.notified(request.params)


async def cancel_tool_call(request: Request) -> Any:
    params = request.params
    _, session = await request.attached(params.session_id)
    asked = CancelToolCall(tool_call_id=params.tool_call_id)
    return _cancelled(await request.perform(session, asked))


async def cancel_terminal(request: Request) -> Any:
    params = request.params
    _, session = await request.attached(params.session_id)
    asked = CancelTerminal(terminal_id=params.terminal_id)
    return _cancelled(await request.perform(session, asked))


def _cancelled(done: bool) -> dict[str, Any]:
    if not done:
        # TOOL-V2-14, TERMV2-11: unknown, ended or never offered, it is the client's mistake, not a missing
        # method.
        raise InvalidParams("this cannot be cancelled")
    return {}


async def _answered_again(
    request: Request, session: AnySession, voice: AttachmentWriter, message_id: str
) -> bool:
    """Give the outcome of a prompt that was settled before; not yet possible where that is the end of a turn
    that is open. If the session is lost here meanwhile, its outcome is the one where it is served then."""
    while True:
        try:
            await session.feed.durable()  # the fold runs ahead of the store
            entry = session.fold.prompts.get(message_id)
            if entry is None or not entry.settled:
                return False
            over = not session.fold.turns.took(entry.became or entry.message_id)
            if over:
                await voice.caught_up()  # invariant 3: nothing of the turn comes behind its end
                await session.feed.durable()
            entry = session.fold.prompts.get(message_id) or entry
            return voice.pending.answer_again(entry, request.inbound, over=over)
        except StoreError:
            served = await request.registry.distant.served(session.id)
            if served is None or served is session:
                raise
            session = served


def _kept_id(id: RequestId) -> RequestId:
    """A request id as the journal keeps it. A long string is left out: cut, it could be another request's."""
    return None if isinstance(id, str) and len(id) > ID_LENGTH else id
