"""Subagents (unstable): sessions that work for another one, announced there and followed by its clients.

A child has a journal of its own. Each client of the parent is attached to it as soon as the announcement is
on its way there (SUB-01); it need not resume it, and may do nothing to it but what the announcement allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from antiphon.agent.turn import AgentTurn
from antiphon.engine.reading import encode
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import InvalidParams, SessionUnknown, StoreError
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.reading import read_session
from antiphon.live.voice import Voice
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent
    from antiphon.agent.link import Handlers, Link
    from antiphon.agent.session import AgentSession

LAST_UPDATES = 2.0
"""Seconds that a client gets to join a child whose work is over already."""

_FOLLOWED = frozenset(
    {"session/load", "session/resume", "session/list", "session/status"}
    | {"_antiphon/journal", "_antiphon/timeline", "_antiphon/transcript"}
)
"""What a client may ask of a child as of any session: nothing that changes it."""


class Subagent(AgentTurn):
    """What a subagent works with: a turn in a session of its own, with its own messages, tool calls and
    questions."""

    def __init__(self, session: AgentSession, parent: AgentSession) -> None:
        super().__init__(session, None)
        self._parent = parent

    @property
    def id(self) -> str:
        """The id of its session."""
        return self.session.id

    @property
    def trace(self) -> dict[str, Any]:
        return self._parent.trace

    async def describe(self, *, title: str | None = None, description: str | None = None) -> None:
        """Announce it under another title or description."""
        await self._parent.update(
            v2.SubagentUpdate(
                session_id=v2.SessionId(self.id),
                title=UNSET if title is None else title,
                description=UNSET if description is None else description,
            )
        )

    async def instruct(self, *content: str | v2.ContentBlock) -> str:
        """Show what the parent tells it, in both sessions; the message's id (SUB-03)."""
        return await self._pass_on(content, sender=self._parent.id, recipient=self.id)

    async def report(self, *content: str | v2.ContentBlock) -> str:
        """Show what it tells the parent, in both sessions."""
        return await self._pass_on(content, sender=self.id, recipient=self._parent.id)

    async def _pass_on(
        self, content: tuple[str | v2.ContentBlock, ...], *, sender: str, recipient: str
    ) -> str:
        from antiphon.agent.session import new_id

        message = v2.SessionMessage(
            message_id=v2.MessageId(new_id("msg")),
            sender_session_id=v2.SessionId(sender),
            recipient_session_id=v2.SessionId(recipient),
            content=[v2.TextContent(text=one) if isinstance(one, str) else one for one in content],
        )
        await self._parent.update(message)
        await self.session.update(message)
        return message.message_id


@asynccontextmanager
async def subagent(
    parent: AgentSession, title: str, *, description: str | None, cancellable: bool, cwd: str | None
) -> AsyncIterator[Subagent]:
    """A child that works inside the block. Cancelled by itself, it ends there and the parent goes on."""
    child = await parent.spawn(cwd or parent.cwd)
    try:
        child.parent, child.cancellable = parent, cancellable
        announced = _announced(parent, child, title, description=description, cancellable=cancellable)
        async with announced, child.turn() as turn:
            made = Subagent(child, parent)
            try:
                yield made
            finally:
                turn.usage = made.usage
    finally:
        child.retire()


@asynccontextmanager
async def _announced(
    parent: AgentSession, child: AgentSession, title: str, *, description: str | None, cancellable: bool
) -> AsyncIterator[None]:
    """The parent tells of the child before anything names it, and of its end behind its last word."""
    id = v2.SessionId(child.id)
    cancel = v2.SubagentSessionCapabilities(cancel=v2.SessionCancelCapabilities())
    await parent.update(
        v2.SubagentUpdate(
            session_id=id,
            title=title,
            description=UNSET if description is None else description,
            capabilities=cancel if cancellable else UNSET,
            state=v2.StateUpdate(state=v2.State.RUNNING),
            cwd=child.cwd,
        )
    )
    told = parent.fold.last_seq
    behind = parent.fold.turn is None
    if behind:  # PROMPT-V2-44
        parent.behind.report(child.id, v2.BackgroundSubagent(session_id=id))
    for link in parent.clients():
        follow(link, parent, child, told)
    try:
        yield
    finally:
        parent.emit_update(v2.SubagentUpdate(session_id=id, state=_ended(child)))
        if behind:  # PROMPT-V2-46
            parent.behind.report(child.id, None)


def _ended(child: AgentSession) -> v2.StateUpdate:
    last = child.fold.turns.last
    if last is None:
        return v2.StateUpdate(state=v2.State.IDLE)
    return v2.StateUpdate(
        state=v2.State.IDLE, stop_reason=last.stop_reason, error=last.error, usage=last.usage
    )


async def retire(agent: Agent, child: AgentSession) -> None:
    """Its work is done: whoever follows it gets the last of it, and it is put away in the store."""
    if child.joining:
        await asyncio.wait(child.joining, timeout=LAST_UPDATES)
    await asyncio.gather(*(link.dismiss(child.id) for link in child.clients()))
    await agent.release(child)


# --- following ----------------------------------------------------------------------------------------


def takes(link: Link) -> bool:
    """Whether a client understands subagents: every v2 client does (SUB-01)."""
    return not link.v1 or (link.v1_client is not None and link.v1_client.subagents is not None)


def follow(link: Link, parent: AgentSession, child: AgentSession, announced: int) -> None:
    """Let a client follow a child, once it has been sent everything of the parent up to `announced`."""
    voice = link.voices.get(parent.id)
    if voice is not None and takes(link) and child.id not in link.voices:
        joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        child.joining.add(joined)
        link.connection.start_soon(_follow(link, parent.id, voice, child, announced, joined))


async def _follow(
    link: Link,
    parent_id: str,
    voice: Voice,
    child: AgentSession,
    announced: int,
    joined: asyncio.Future[None],
) -> None:
    try:
        await voice.reached(announced)
        if link.voices.get(parent_id) is not voice or child.id in link.voices or child.gone:
            return  # it left, or follows already
        own = link.voices[child.id] = link.new_voice(child.id)
        own.pin(child.live, child.heard, history=True)
        own.start(state=True)
    finally:
        child.joining.discard(joined)
        joined.set_result(None)


def announcements(session: AgentSession, voice: Voice) -> list[bytes]:
    """The children at work, for a client to which nothing was replayed."""
    working = [told.materialize() for told in session.fold.subagents if told.working]
    return [raw for update in working for raw in voice.writer.write(update, encode(update))]


def follow_all(link: Link, session: AgentSession) -> None:
    """A client has joined: it follows the children that are at work, too."""
    for told in session.fold.subagents:
        child = link.agent.find(told.id)
        if child is not None and child.parent is session:
            follow(link, session, child, session.fold.last_seq)


def with_children(link: Link, session_ids: tuple[str, ...]) -> list[str]:
    """These sessions and, of those that this client follows, the ones that work for them."""
    found = list(session_ids)
    for parent_id in found:
        for session_id in link.voices:
            session = link.agent.find(session_id)
            if session is not None and session.parent is not None and session.parent.id == parent_id:
                found.append(session_id)
    return found


# --- what clients may do ------------------------------------------------------------------------------


def guarded(link: Link, handlers: Handlers) -> Handlers:
    """Handlers that leave children alone: a client changes nothing of them (SUB-02)."""

    def guard(handler: Callable[[Any, Inbound], Awaitable[Any]]) -> Callable[[Any, Inbound], Awaitable[Any]]:
        async def left_alone(params: Any, inbound: Inbound) -> Any:
            session_id = (
                params.get("sessionId") if isinstance(params, dict) else getattr(params, "session_id", None)
            )
            session = link.agent.find(session_id) if isinstance(session_id, str) else None
            child = session is not None and session.subagent_of is not None
            if child and inbound.method not in _FOLLOWED:  # an extension is known by its request alone
                raise InvalidParams("this session works for another one and is only followed")
            return await handler(params, inbound)

        return left_alone

    return {method: guard(handler) for method, handler in handlers.items()}


def cancel_guarded(link: Link, cancel: Callable[[Any], None]) -> Callable[[Any], None]:
    def guarded(params: Any) -> None:
        session = link.agent.find(params.session_id)
        if session is None or session.subagent_of is None or session.cancellable:
            cancel(params)

    return guarded


async def delete_children(agent: Agent, session_id: str) -> None:
    """A session is to be deleted: what worked for it goes with it, those of them first that work for others.

    A damaged session does not tell which ones worked for it: they stay. Sessions that work for each other in
    a circle are each deleted once.
    """
    found = {session_id: None}
    for id in (waiting := [session_id]):
        try:
            session = await read_session(agent.store, id)
        except (SessionUnknown, StoreError):
            continue
        for told in session.subagents:
            record = await agent.store.get(told.id)
            if told.id not in found and record is not None and record.meta.get(SUBAGENT_OF) == id:
                found[told.id] = None
                waiting.append(told.id)
    for id in reversed(waiting[1:]):
        await agent.store.delete(id)
