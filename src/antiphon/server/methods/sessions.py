"""Sessions: new, load, resume, fork, close and delete."""

from __future__ import annotations

import os.path
from typing import Any

from antiphon.bridge.upgrade import requests as upward
from antiphon.errors import InvalidParams, SessionClaimed
from antiphon.schema import v2
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.antiphon.sessions import CloseSessionMeta, ForkSessionMeta
from antiphon.server.distant.elsewhere import open_elsewhere
from antiphon.server.methods.entry import enter, join, read_cursor
from antiphon.server.request import Request
from antiphon.server.session import ServedSession
from antiphon.server.subagents import delete_subagents

SETUP = 1024 * 1024
"""Bytes of the params that set up a session. The server keeps most of them while the session is open."""
PATHS = 64 * 1024
"""Characters of the folders of a session. They are in every list of sessions."""


async def new(request: Request) -> Any:
    wanted = request.upgraded(upward.new_session)
    check_setup(request, wanted)
    session = await request.registry.begin(wanted, lambda: request.server.create(wanted, request.client))
    return enter(request, session, v2.NewSessionResponse)


async def fork(request: Request) -> Any:
    wanted = request.upgraded(upward.fork_session)
    check_setup(request, wanted)
    at = read_meta(ForkSessionMeta, wanted.meta).message_id
    session = await request.registry.begin(wanted, lambda: request.server.fork(wanted, at, request.client))
    return enter(request, session, v2.ForkSessionResponse)


async def load(request: Request) -> Any:
    return await _reopen(request, request.upgraded(upward.load_session), loaded=True)


async def resume(request: Request) -> Any:
    return await _reopen(request, request.upgraded(upward.resume_session), loaded=False)


async def _reopen(request: Request, params: v2.ResumeSessionRequest, *, loaded: bool) -> Any:
    client, registry = request.client, request.registry
    cursor = read_cursor(params, loaded=loaded)
    check_setup(request, params)
    history = params.replay_from is not None and cursor is None
    voice = registry.attachments.new_voice(client, params.session_id)
    session = await registry.open(params.session_id, voice=voice if history else None)
    if cursor is not None:
        await cursor.check(session, registry.store)
    if client.policy.acts:
        await registry.set_up(session, params)
        if session.gone and not voice.pinned:  # another server was faster
            session = await registry.open(session.id)
    elif isinstance(session, ServedSession) and not session.additional_directories:
        session.restore_directories()
    return await join(request, session, voice, history=history, cursor=cursor, loaded=loaded)


async def close(request: Request) -> Any:
    client, registry, params = request.client, request.registry, request.params
    session = registry.serving(params.session_id)
    if session is None:
        await registry.wait_closed(params.session_id)
        return {}  # C-18: what is not there is closed
    for_all = read_meta(CloseSessionMeta, params.meta).for_all or session.closing
    if not client.policy.acts or (registry.attachments.has_others(client, session.id) and not for_all):
        await registry.attachments.detach(client, session.id)  # the others go on
    else:
        with registry.attachments.answers_close(client, session.id):
            await registry.close_if_open(session.id, client.policy)
    return {}


async def delete(request: Request) -> Any:
    registry, session_id = request.registry, request.params.session_id
    await registry.close_if_open(session_id, request.client.policy)
    await registry.wait_closed(session_id)
    await delete_subagents(registry.store, session_id)
    try:
        await registry.store.delete(session_id)
    except SessionClaimed as error:
        raise open_elsewhere(session_id) from error
    registry.changed(session_id)
    return {}


def check_setup(
    request: Request, params: v2.NewSessionRequest | v2.ResumeSessionRequest | v2.ForkSessionRequest
) -> None:
    if request.inbound.size > SETUP:
        raise InvalidParams(f"a session is set up with at most {SETUP} bytes, got {request.inbound.size}")
    paths = (params.cwd, *params.additional_directories)
    if sum(map(len, paths)) > PATHS:
        raise InvalidParams(f"the folders of a session may have {PATHS} characters in all")
    for path in paths:
        if not os.path.isabs(path):  # RPC-43: paths are absolute, and native to the machine of the agent
            raise InvalidParams(f"{path!r} is not an absolute path")
    request.server.offer.check_system_prompt(params.system_prompt)
    names = [getattr(server, "name", None) for server in params.mcp_servers]
    for server in params.mcp_servers:
        if not isinstance(server, v2.McpServerStdio | v2.McpServerHttp | v2.McpServerAcp):
            raise InvalidParams("an MCP server of an unsupported type")  # MCPCFG-05
    if len(set(names)) != len(names):
        raise InvalidParams("two MCP servers of one name")  # MCPCFG-06
