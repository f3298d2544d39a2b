"""The text of a prompt: the skill that plain words ask for, and the title that a session gets from it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from antiphon.agent import AgentSession, AgentTurn
from antiphon.rehearsal.drills import DRILLS
from antiphon.rehearsal.skill import Skill
from antiphon.schema import v2

LONGEST_REQUEST = 300
_SENTENCES = [
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"(?:find|search(?: for)?|grep|look for)\s+(.+)", "find"),
        (r"(?:list|show(?: me)?)\s+(?:all |the )*files(?:\s+(?:in|of)\s+(.+))?", "look"),
        (r"(?:ls|look)(?:\s+(?:at\s+)?(.+))?", "look"),
        (r"(?:show(?: me)?|open|cat)\s+(\S+)", "look"),
        (r"run\s+(?:all |the )*(tests)", "run"),
        (r"(?:(?:start|begin|give me|show me|take)\s+)?(?:a |the )?tour()", "tour"),
        (r"(?:what can you do|what do you do|who are you)()", "help"),
    )
]


def understood(text: str, skills: Mapping[str, Skill]) -> tuple[Skill, str] | None:
    """Return the skill that plain words ask for and its argument, or `None`."""
    words = text.strip()
    if not words or len(words) > LONGEST_REQUEST or "\n" in words:
        return None
    plain = words.rstrip(".!?").strip()
    skill = skills.get(plain.lower())
    if skill is not None and skill.plain and skill.name not in DRILLS:
        return skill, ""
    for sentence, name in _SENTENCES:
        found = sentence.fullmatch(words if name in ("find", "look") else plain)
        if found is not None:
            return skills[name], (found[1] or "").strip()
    return None


LONGEST_TITLE = 60


def title_of(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = line.removeprefix("/")
    if len(line) > LONGEST_TITLE:
        line = line[: LONGEST_TITLE - 1].rstrip() + "…"
    return line[:1].upper() + line[1:]


async def name_session(turn: AgentTurn) -> None:
    """Give the session a title if it has none."""
    if not _named(turn.session):
        await turn.session.set_title(title_of(_said(turn)) or None)


def name_session_later(turn: AgentTurn) -> None:
    """Do the same after the turn, so that the turn has nothing but the answer."""
    if not _named(turn.session):
        turn.session.soon(_name(turn.session, title_of(_said(turn))))


async def _name(session: AgentSession, title: str) -> None:
    await session.idle()
    if title and not _named(session):
        await session.set_title(title)


def _said(turn: AgentTurn) -> str:
    """Return the last text of the prompt. Before it, a hub may put the earlier conversation."""
    texts = [block.text for block in turn.prompt.content if isinstance(block, v2.TextContent)]
    return texts[-1] if texts else ""


def _named(session: AgentSession) -> bool:
    info = session.fold.facts.info
    return info is not None and info.title is not None
