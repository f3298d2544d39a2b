"""Sessions on the wire: new, load, resume, close and delete."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from antiphon.agent.beginning import enter
from antiphon.agent.cursors import read_cursor
from antiphon.agent.joining import join
from antiphon.agent.subagents import delete_children
from antiphon.agent.system_prompts import check_system_prompt
from antiphon.bridge import requests as upward
from antiphon.errors import AntiphonError, InvalidParams, RequestError, SessionClaimed
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.schema.version import ours_in

if TYPE_CHECKING:
    from antiphon.agent.link import Handlers, Link


def handlers(link: Link) -> Handlers:
    async def new(params: Any, inbound: Inbound) -> Any:
        wanted: v2.NewSessionRequest = upward.new_session(params) if link.v1 else params
        check_setup(wanted, link.agent.system_prompts)
        session = await link.agent.beginning.begin(wanted, lambda: link.agent.create(wanted, maker=link))
        return enter(link, session, inbound, v2.NewSessionResponse)

    async def load(params: v1.LoadSessionRequest, inbound: Inbound) -> Any:
        return await reopen(upward.load_session(params), inbound, loaded=True)

    async def resume(params: Any, inbound: Inbound) -> Any:
        return await reopen(upward.resume_session(params) if link.v1 else params, inbound, loaded=False)

    async def reopen(params: v2.ResumeSessionRequest, inbound: Inbound, *, loaded: bool) -> Any:
        cursor = read_cursor(params, loaded=loaded)
        check_setup(params, link.agent.system_prompts)
        history = params.replay_from is not None and cursor is None
        voice = link.new_voice(params.session_id)
        session = await link.agent.open(params.session_id, voice=voice if history else None)
        if cursor is not None:
            cursor.check(session.fold)
        if link.permit.acts:
            await link.agent.set_up(session, params)
        elif not session.additional_directories and session.fold.created is not None:
            session.additional_directories = session.fold.created.additional_directories
        return await join(link, session, voice, inbound, history=history, cursor=cursor, loaded=loaded)

    async def close(params: Any, inbound: Inbound) -> Any:
        session = link.agent.find(params.session_id)
        if session is None:
            await link.agent.put_away(params.session_id)
            return {}  # C-18: what is not there is closed
        for_all = ours_in(params.meta).get("forAll") is True or session.closing
        if not link.permit.acts or (link.agent.others(link, session.id) and not for_all):
            await link.leave(session.id)  # the others go on
        else:
            await link.agent.close(session)
        return {}

    async def delete(params: Any, inbound: Inbound) -> Any:
        session = link.agent.find(params.session_id)
        if session is not None:
            await link.agent.close(session)
        await link.agent.put_away(params.session_id)
        await delete_children(link.agent, params.session_id)
        try:
            await link.agent.store.delete(params.session_id)
        except SessionClaimed as error:
            elsewhere = {"sessionId": params.session_id}
            raise RequestError(
                AntiphonError.code, "The session is open in another process", data=elsewhere
            ) from error
        link.agent.noticed(params.session_id)
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
