"""Beginning a session, once: asked again under its operation id, `session/new` and `session/fork` give the
session of the first time.

Its id is made from that of the operation, so the store alone decides whether it is there: also after a
restart, and for whoever comes twice at the same time.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from antiphon.agent.operations import operation_id_of
from antiphon.agent.session import AgentSession, new_id
from antiphon.agent.session_start import SessionStart
from antiphon.agent.subagents import follow_all
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.schema.version import ours_in

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent
    from antiphon.agent.link import Link

Wanted = v2.NewSessionRequest | v2.ForkSessionRequest
Make = Callable[[], Awaitable[AgentSession]]


def session_id_of(wanted: Wanted) -> str:
    """The id of a new session."""
    operation_id = operation_id_of(ours_in(wanted.meta))
    if operation_id is None:
        return new_id("sess")
    source = wanted.session_id if isinstance(wanted, v2.ForkSessionRequest) else ""
    named = hashlib.sha256(f"{source}\n{operation_id}".encode())
    return f"sess_{named.hexdigest()[:24]}"


class Beginning:
    """The sessions of an agent that are being begun under an operation id."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._tasks: dict[str, asyncio.Task[AgentSession]] = {}

    async def begin(self, wanted: Wanted, make: Make) -> AgentSession:
        """The session that is wanted. Under an operation id it is made also for a client that is gone
        meanwhile; what fails leaves nothing behind that would keep it from being tried again."""
        if operation_id_of(ours_in(wanted.meta)) is None:
            return await make()
        id = session_id_of(wanted)
        task = self._tasks.get(id)
        if task is None:
            task = self._tasks[id] = asyncio.get_running_loop().create_task(self._once(id, make))
            task.add_done_callback(lambda _: self._tasks.pop(id, None))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait
        return await asyncio.shield(task)

    async def _once(self, id: str, make: Make) -> AgentSession:
        if await self._agent.store.get(id) is not None:
            return await self._agent.open(id)
        return await make()

    async def aclose(self) -> None:
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def enter(
    link: Link,
    session: AgentSession,
    inbound: Inbound,
    answer: type[v2.NewSessionResponse] | type[v2.ForkSessionResponse],
) -> Any:
    """Attach the client to the session it has begun, and answer. It is sent all that happened since the
    session began, behind the answer. A session that was begun before is shown as it is now, unless the
    client follows it already."""
    voice, follows = link.voices.get(session.id), True
    start, again = None, False
    if voice is None:
        voice, follows = link.new_voice(session.id), False
        start, session.start = session.start, None
        again = start is None
        after = None if start is None else start.seq
        voice.pin(session.live, session.heard, history=again, after=after, begins=not again)
        link.voices[session.id] = voice
    said = start or SessionStart.of(session.fold)
    result, later = voice.writer.opened(
        answer(
            session_id=v2.SessionId(session.id),
            config_options=list(said.config_options),
            available_commands=[] if again and link.v1 else list(said.commands),
            meta={**session.opened_meta, **(voice.joined(session.introduction) or {})} or None,
        )
    )
    link.connection.answer(inbound, result)
    if follows:
        return result
    for raw in later:
        voice.say(raw)
    if start is not None:
        start.send_notes(voice.notify_at)
    voice.start(state=again)
    if start is not None:
        start.followed.set()
    link.agent.opened(session)
    follow_all(link, session)
    return result
