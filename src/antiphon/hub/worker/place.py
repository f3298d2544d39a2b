"""Place: how a session is opened at its agent, new or again."""

from __future__ import annotations

import os
from typing import Any

from msgspec import Struct

from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.engine.session import Session
from antiphon.hub.upstream.mcp import Provision
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.upstream.upstream import Upstream
from antiphon.schema import v2


class Place(Struct, frozen=True):
    """How a session is to be opened at its agent."""

    cwd: str
    additional_directories: tuple[str, ...]
    mcp_servers: tuple[v2.McpServer, ...]
    provision: Provision
    """The clients that provide MCP servers of their own."""
    meta: dict[str, Any] | None = None
    """The `_meta` of the client's request (OBS-02)."""


async def open_new(upstream: Upstream, place: Place) -> UpstreamSession:
    request = v2.NewSessionRequest(**_setup(upstream, place), meta=place.meta)
    return await upstream.agent.create(request)


async def open_again(upstream: Upstream, session_id: str, place: Place) -> UpstreamSession:
    """Resume or load a session, whichever the agent has. What the agent sends until it answers is its replay,
    and is not passed on."""
    await upstream.left_behind(session_id)
    request = v2.ResumeSessionRequest(session_id=v2.SessionId(session_id), **_setup(upstream, place))
    return await upstream.agent.reopen(request)


def _setup(upstream: Upstream, place: Place) -> dict[str, Any]:
    """Return the fields of a request for the absolute folders (RPC-43) and the MCP servers. Raises
    `LocalError` for those that the agent cannot take."""
    servers = upstream.mcp.offer(place.mcp_servers, place.provision)
    directories = [os.path.abspath(directory) for directory in place.additional_directories]
    upstream.agent.abilities.check_setup(servers, directories)
    cwd = os.path.abspath(place.cwd)
    return {"cwd": cwd, "additional_directories": directories, "mcp_servers": servers}


def go_on(session: UpstreamSession, fold: Session) -> None:
    """Let message ids that are made for a v1 agent follow those that the session has (invariant 7)."""
    dialect = session.dialect
    if isinstance(dialect, AgentDialectV1):
        dialect.upgrade.holds((message.type, message.id) for message in fold.messages)


def news(session: UpstreamSession, fold: Session) -> list[v2.SessionUpdate]:
    """Return updates for what a reopened session reports differently than the hub's fold."""
    updates: list[v2.SessionUpdate] = []
    config, commands = fold.facts.config, fold.facts.commands
    options: Any = session.config_options
    if options and (config is None or options != config.latest.config_options):
        updates.append(v2.ConfigOptionUpdate(config_options=options))
    if session.commands and (commands is None or session.commands != commands.latest.available_commands):
        updates.append(v2.AvailableCommandsUpdate(available_commands=session.commands))
    if session.fold.turn is not None:
        updates.append(session.fold.turns.snapshot())  # the agent still works: it may be a hub
    return updates
