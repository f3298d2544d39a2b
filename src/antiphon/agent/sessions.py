"""Sessions on the wire: new, load, resume, close and delete."""

from __future__ import annotations

import asyncio
import os.path
from typing import TYPE_CHECKING, Any

from antiphon.agent.declaring import commands_of, options_of
from antiphon.agent.subagents import announcements, delete_children, follow_all
from antiphon.agent.system_prompts import check_system_prompt
from antiphon.bridge import requests as upward
from antiphon.engine.reading import encode
from antiphon.errors import AntiphonError, InvalidParams, RequestError, SessionClaimed
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.schema.wire import Unknown

if TYPE_CHECKING:
    from antiphon.agent.link import Handlers, Link


def handlers(link: Link) -> Handlers:
    async def new(params: Any, inbound: Inbound) -> Any:
        wanted: v2.NewSessionRequest = upward.new_session(params) if link.v1 else params
        check_setup(wanted, link.agent.system_prompts)
        session = await link.agent.create(wanted)
        voice = link.new_voice(session.id)
        voice.pin(session.live, session.heard)
        link.voices[session.id] = voice
        result, later = voice.writer.opened(
            v2.NewSessionResponse(
                session_id=v2.SessionId(session.id),
                config_options=options_of(session.fold),
                available_commands=commands_of(session.fold),
            )
        )
        link.connection.answer(inbound, result)
        for raw in later:
            voice.say(raw)
        voice.start()
        link.agent.opened(session)
        return result

    async def load(params: v1.LoadSessionRequest, inbound: Inbound) -> Any:
        return await reopen(upward.load_session(params), inbound, loaded=True)

    async def resume(params: Any, inbound: Inbound) -> Any:
        return await reopen(upward.resume_session(params) if link.v1 else params, inbound, loaded=False)

    async def reopen(params: v2.ResumeSessionRequest, inbound: Inbound, *, loaded: bool) -> Any:
        after = _after(params.replay_from)
        check_setup(params, link.agent.system_prompts)
        history = params.replay_from is not None and after is None
        voice = link.new_voice(params.session_id)
        session = await link.agent.open(params.session_id, voice=voice if history else None)
        if after is not None and after > session.fold.last_seq:
            raise InvalidParams("`replayFrom` names an event that is not there yet")
        await link.agent.set_up(session, params)
        before = link.voices.pop(session.id, None)
        if before is not None:
            await before.stop()
            voice.take_over(before)
        if not voice.pinned:
            voice.pin(session.live, session.heard, history=history, after=after)
        link.voices[session.id] = voice
        shown = loaded and history  # what was replayed already is not said again to a v1 client
        result, later = voice.writer.opened(
            v2.ResumeSessionResponse(
                config_options=options_of(session.fold),
                available_commands=[] if shown else commands_of(session.fold),
            ),
            loaded=loaded,
        )
        usage = session.fold.facts.usage
        if usage is not None and params.replay_from is None:  # USAGE-05
            known = usage.materialize()
            later = [*later, *voice.writer.write(known, encode(known))]
        if not history:
            later = [*later, *announcements(session, voice)]  # SUB-01
        answered = asyncio.get_running_loop().create_future()

        def then() -> None:
            link.connection.answer(inbound, result)
            for raw in later:
                voice.say(raw)
            if not answered.done():  # its request may have been cancelled meanwhile
                answered.set_result(None)

        # SESS-21: the state closes every resume; a v1 client has no word for it.
        voice.start(state=True, then=then)
        # Moved by another resume, closed, or lost with its store before the replay was through: it says so.
        await voice.ended_or(answered)
        if not answered.done():
            raise RequestError(AntiphonError.code, "The session was left before it was replayed")
        follow_all(link, session)
        return result

    async def close(params: Any, inbound: Inbound) -> Any:
        session = link.agent.find(params.session_id)
        if session is None:
            return {}  # C-18: what is not there is closed
        if link.agent.others(link, session.id):
            await link.leave(session.id)  # the others go on
        else:
            await link.agent.close(session)
        return {}

    async def delete(params: Any, inbound: Inbound) -> Any:
        session = link.agent.find(params.session_id)
        if session is not None:
            await link.agent.close(session)
        await delete_children(link.agent, params.session_id)
        try:
            await link.agent.store.delete(params.session_id)
        except SessionClaimed as error:
            elsewhere = {"sessionId": params.session_id}
            raise RequestError(
                AntiphonError.code, "The session is open in another process", data=elsewhere
            ) from error
        return {}

    return {
        "session/new": new,
        "session/load": load,
        "session/resume": resume,
        "session/close": close,
        "session/delete": delete,
    }


def check_setup(
    params: v2.NewSessionRequest | v2.ResumeSessionRequest | v2.ForkSessionRequest,
    modes: frozenset[v2.SystemPromptMode],
) -> None:
    _absolute(params.cwd, *params.additional_directories)
    check_system_prompt(params.system_prompt, modes)  # SESS-58
    names = [getattr(server, "name", None) for server in params.mcp_servers]
    for server in params.mcp_servers:
        if not isinstance(server, v2.McpServerStdio | v2.McpServerHttp | v2.McpServerAcp):
            raise InvalidParams("an MCP server of an unsupported type")  # MCPCFG-05
    if len(set(names)) != len(names):
        raise InvalidParams("two MCP servers of one name")  # MCPCFG-06


def _absolute(*paths: str) -> None:
    """RPC-43: paths are absolute, and native to the machine the agent runs on."""
    for path in paths:
        if not os.path.isabs(path):
            raise InvalidParams(f"{path!r} is not an absolute path")


def _after(replay_from: v2.ReplayFrom | None) -> int | None:
    """The number that our own `_antiphon_after` names; `None` for the start."""
    if not isinstance(replay_from, Unknown):
        return None
    seq = replay_from.get("seq")
    if replay_from.get("type") != "_antiphon_after":
        raise InvalidParams("`replayFrom` is of an unknown type")  # SESS-19
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        raise InvalidParams("`replayFrom.seq` is the number of an event")
    return seq
