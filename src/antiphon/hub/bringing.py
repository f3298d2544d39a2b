"""Bringing a session to an agent: the one it was at, or another that is told what happened so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from antiphon.client import ClientSession
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.engine.session import Session
from antiphon.engine.transcript import MessageType
from antiphon.hub.mcp_offers import Provision
from antiphon.hub.upstream import Upstream
from antiphon.schema import v2

TOLD = 60_000
"""Characters of what happened so far that a new agent session is told; the last ones."""
LOST = v2.Notice(
    severity=v2.NoticeSeverity.WARNING,
    title="The agent could not bring this session back",
    description="It goes on in a new one, which is told what was said. What the agent itself remembered of "
    "tools, files and thoughts is lost.",
)
RETOLD = v2.Notice(
    severity=v2.NoticeSeverity.WARNING,
    title="The agent cannot fork this session",
    description="The fork is a new session, which is told what was said. What the agent itself remembers of "
    "tools, files and thoughts stays with the other one.",
)
PREAMBLE = """\
This conversation began earlier, in a session that you cannot remember. What was said so far stands between \
the lines. Go on from there; do not repeat it.
--------
"""
SPEAKERS = {MessageType.USER: "User", MessageType.AGENT: "You"}


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


def is_command(content: Sequence[v2.ContentBlock], fold: Session) -> bool:
    """Whether it is a slash command that the agent has: it has to stand first, and alone, to be one."""
    commands = fold.facts.commands
    first = content[0] if content else None
    if commands is None or not isinstance(first, v2.TextContent) or not first.text.startswith("/"):
        return False
    word = first.text[1:].split(maxsplit=1)[:1]
    return word in [[getattr(command, "name", None)] for command in commands.latest.available_commands]


def story(fold: Session) -> str | None:
    """What was said so far, for an agent that was not there; `None` where nothing was."""
    lines = [
        f"{SPEAKERS[message.type]}: {message.text}"
        for message in fold.messages
        if message.type in SPEAKERS and message.text
    ]
    if not lines:
        return None
    said = "\n\n".join(lines)
    if len(said) > TOLD:
        said = "[…]" + said[-TOLD:]
    return f"{PREAMBLE}{said}\n--------\n"
