"""Place: how a session is opened at its agent, new or again."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from antiphon.client import ClientSession
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.engine.session import Session
from antiphon.hub.upstream.mcp import Provision
from antiphon.hub.upstream.upstream import Upstream
from antiphon.schema import v2


class Place(Struct, frozen=True):
    """Where a session is to be at its agent."""

    cwd: str
    additional_directories: tuple[str, ...]
    mcp_servers: tuple[v2.McpServer, ...]
    provision: Provision
    """Who provides those of the servers that are clients' own."""
    meta: dict[str, Any] | None = None
    """What a client put beside its request (OBS-02)."""


async def open_new(upstream: Upstream, place: Place) -> ClientSession:
    return await upstream.client.new_session(
        place.cwd,
        mcp_servers=upstream.mcp_offers.tell(place.mcp_servers, place.provision),
        additional_directories=place.additional_directories,
        meta=place.meta,
    )


async def open_again(upstream: Upstream, session_id: str, place: Place) -> ClientSession:
    """By resume or load, whichever the agent has. What it sends until it answers is its replay, and nobody's
    news."""
    await upstream.left_behind(session_id)
    return await upstream.client.resume_session(
        session_id,
        place.cwd,
        mcp_servers=upstream.mcp_offers.tell(place.mcp_servers, place.provision),
        additional_directories=place.additional_directories,
    )


def go_on(session: ClientSession, fold: Session) -> None:
    """Ids that are made for a v1 agent's messages follow those that the session has (invariant 7)."""
    dialect = session._core.dialect
    if isinstance(dialect, AgentDialectV1):
        dialect.upgrade.holds((message.type, message.id) for message in fold.messages)


def news(session: ClientSession, fold: Session) -> list[v2.SessionUpdate]:
    """What a session that was brought back tells otherwise than it is known here."""
    told: list[v2.SessionUpdate] = []
    config, commands = fold.facts.config, fold.facts.commands
    options: Any = session.config_options
    if options and (config is None or options != config.latest.config_options):
        told.append(v2.ConfigOptionUpdate(config_options=options))
    if session.commands and (commands is None or session.commands != commands.latest.available_commands):
        told.append(v2.AvailableCommandsUpdate(available_commands=session.commands))
    if session.fold.turn is not None:
        told.append(session.fold.turns.snapshot())  # it works on: a hub itself, perhaps
    return told
