"""Skill: something the agent can do, offered as a slash command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from antiphon.agent import AgentTurn
from antiphon.rehearsal.pace import speak

Work: TypeAlias = Callable[[AgentTurn, str], Awaitable[str | None]]
"""Does it, with the text behind the command; a stop reason it returns is the turn's."""


class Unable(Exception):
    """Why something is not done, in words for the user. A tool call that it ends has failed."""


class Skill(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    work: Work
    hint: str | None = None
    """What can be typed behind the name."""
    about: str | None = None
    """Which part of the protocol was seen; told the first time."""
    plain: bool = False
    """Whether its bare name, without a slash, is understood too."""


class Outcome(Struct, frozen=True):
    reason: str | None = None
    """The stop reason, where it has one."""
    done: bool = True
    """Whether there was something to see."""


async def carry_out(skill: Skill, turn: AgentTurn, rest: str) -> Outcome:
    """Do it, or say why not."""
    try:
        return Outcome(await skill.work(turn, rest))
    except Unable as why:
        await speak(turn, str(why))
        return Outcome(done=False)


def number(text: str, default: int, *, most: int) -> int:
    """The number that a text is, within bounds; the default where it is none."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        return default
    return min(int(digits[:12]), most)


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 file`, `1,200 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
