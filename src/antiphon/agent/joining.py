"""Joining: a client begins to follow a session that is there, by a load, a resume or an attach."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antiphon.agent.cursors import Cursor
from antiphon.agent.declaring import commands_of, options_of
from antiphon.agent.subagents import announcements, follow_all
from antiphon.engine.folding import Item
from antiphon.engine.reading import encode
from antiphon.errors import AntiphonError, RequestError
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.voice import Voice
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.agent.link import Link
    from antiphon.agent.session import AgentSession

Answer = Callable[[Any], Any]


async def join(
    link: Link,
    session: AgentSession,
    voice: Voice,
    inbound: Inbound,
    *,
    history: bool = False,
    items: Sequence[Item] = (),
    cursor: Cursor | None = None,
    loaded: bool = False,
    answer: Answer = lambda result: result,
) -> Any:
    """Send what is asked for of what was, answer, and follow. The answer stands between the two; `answer`
    makes it of what a load or resume is answered."""
    async with link.moving:
        after = None if cursor is None else cursor.after
        before = link.voices.get(session.id)  # it stays until this one takes its place
        if before is not None:
            await voice.take_over(before, after=after)
        if session.closing or session.gone:
            raise RequestError(AntiphonError.code, "The session was closed", data={"reason": "closed"})
        if not voice.pinned:
            voice.pin(session.live, session.heard, history=history, items=items, after=after)
        if cursor is not None:
            cursor.own(voice, session.fold)
        link.voices[session.id] = voice
        if session.start is not None:  # the client that began the session was lost before it followed
            session.start.followed.set()
    shown = loaded and history  # what was replayed already is not said again to a v1 client
    result, later = voice.writer.opened(
        v2.ResumeSessionResponse(
            config_options=options_of(session.fold),
            available_commands=[] if shown else commands_of(session.fold),
            meta=voice.joined(session.introduction),
        ),
        loaded=loaded,
    )
    usage = session.fold.facts.usage
    if usage is not None and not history and cursor is None:  # USAGE-05
        known = usage.materialize()
        later = [*later, *voice.writer.write(known, encode(known))]
    if not history:
        later = [*later, *announcements(session, voice)]  # SUB-01
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def then() -> None:
        given = answer(result)
        link.connection.answer(inbound, given)
        for raw in later:
            voice.say(raw)
        if not answered.done():  # its request may have been cancelled meanwhile
            answered.set_result(given)

    # SESS-21: the state closes every resume; a v1 client has no word for it.
    voice.start(state=True, then=then)
    # Moved by another resume, closed, or lost with its store before the replay was through: it says so.
    await voice.ended_or(answered)
    if not answered.done():
        reason = {"reason": "closed" if session.closing or session.gone else "detached"}
        raise RequestError(AntiphonError.code, "The session was left before it was replayed", data=reason)
    follow_all(link, session)
    return answered.result()
