"""Forking a session: a new one that goes on from a point of it (SESS-51, unstable)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from antiphon.client.folders import Folder, folder
from antiphon.client.mcp import AnyMcpServer, declared
from antiphon.client.system_prompts import system_prompt
from antiphon.errors import CallFailed, LocalError
from antiphon.schema import v2
from antiphon.schema.version import META_KEY

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession

logger = logging.getLogger("antiphon.client")


async def fork_session(
    source: ClientSession,
    *,
    at: str | None,
    cwd: Folder | None,
    mcp_servers: Sequence[AnyMcpServer],
    additional_directories: Sequence[Folder],
    prompt: str | v2.SystemPrompt | None,
    operation_id: str | None = None,
) -> ClientSession:
    """The new session, with its history where the agent can replay it: nothing but the agent knows where it
    cut a session that works."""
    client, able = source.client, source.abilities
    if not able.fork:
        raise LocalError("this agent cannot fork sessions")
    if at is not None and not able.fork_at:
        raise LocalError("this agent cannot fork a session at a message")
    directories = [folder(directory) for directory in additional_directories]
    able.check_setup(declared(mcp_servers), directories)
    ours = {} if at is None else {"messageId": at}
    ours |= client.operation("fork", operation_id)
    wanted = v2.ForkSessionRequest(
        session_id=v2.SessionId(source.id),
        cwd=source.cwd if cwd is None else folder(cwd),
        mcp_servers=declared(mcp_servers),
        additional_directories=directories,
        system_prompt=system_prompt(prompt, able),
        meta={META_KEY: ours} if ours else None,
    )
    fork = await client.begin_session(wanted, mcp_servers)
    if not able.load:
        return fork
    try:
        return await client.load_session(
            fork.id, wanted.cwd, mcp_servers=mcp_servers, additional_directories=directories
        )
    except CallFailed:
        logger.warning("the agent does not replay the session that it forked")
        return fork
