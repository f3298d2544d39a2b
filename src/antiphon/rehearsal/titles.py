"""The title of a session: the first line of its first prompt."""

from __future__ import annotations

from antiphon.agent import AgentSession, AgentTurn
from antiphon.schema import v2

LONGEST = 60


def title_of(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = line.removeprefix("/")
    if len(line) > LONGEST:
        line = line[: LONGEST - 1].rstrip() + "…"
    return line[:1].upper() + line[1:]


async def name_session(turn: AgentTurn) -> None:
    """Give the session a title, if it has none."""
    if not _named(turn.session):
        await turn.session.set_title(title_of(_said(turn)) or None)


def name_session_later(turn: AgentTurn) -> None:
    """The same behind the turn, which then holds what was asked for and nothing else."""
    if not _named(turn.session):
        turn.session.soon(_name(turn.session, title_of(_said(turn))))


async def _name(session: AgentSession, title: str) -> None:
    await session.idle()
    if title and not _named(session):
        await session.set_title(title)


def _said(turn: AgentTurn) -> str:
    """The last text: a hub puts before it what was said earlier, for an agent that has forgotten it."""
    texts = [block.text for block in turn.prompt.content if isinstance(block, v2.TextContent)]
    return texts[-1] if texts else ""


def _named(session: AgentSession) -> bool:
    info = session.fold.facts.info
    return info is not None and info.title is not None
