"""Skills: what the agent can do, offered as slash commands, and how it speaks.

The option `pace` of the session sets the speed. The environment variable ANTIPHON_REHEARSAL_PACE multiplies
every delay, and 0 removes them.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from antiphon.agent import AgentSession, AgentTurn, MessageWriter
from antiphon.schema import v2

VARIABLE = "ANTIPHON_REHEARSAL_PACE"
A_WORD = 0.025
"""Seconds between two words at the pace `calm`."""
_WORDS = re.compile(r"\s*\S+\s*")


def slowness(session: AgentSession) -> float:
    """Return the factor for every delay."""
    if session.config.get("pace", "calm") != "calm":
        return 0.0
    try:
        factor = float(os.environ.get(VARIABLE, "1"))
    except ValueError:
        return 1.0
    return min(factor, 10.0) if math.isfinite(factor) and factor > 0 else 0.0


async def pause(session: AgentSession, seconds: float) -> None:
    """Wait, so that people can read."""
    await asyncio.sleep(seconds * slowness(session))


async def speak(turn: AgentTurn, text: str) -> None:
    """Write a message, word by word."""
    async with turn.message() as message:
        await write(turn, message, text)


async def write(turn: AgentTurn, message: MessageWriter, text: str) -> None:
    delay = A_WORD * slowness(turn.session)
    for word in _WORDS.findall(text):
        await message.write(word)
        await asyncio.sleep(delay)


Work: TypeAlias = Callable[[AgentTurn, str], Awaitable[str | None]]
"""Does the work, with the text after the command, and may return a stop reason."""


class Unable(Exception):
    """Tells the user why the agent does not do something. The open tool call fails."""


class Skill(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    work: Work
    hint: str | None = None
    """What the user can type after the name."""
    about: str | None = None
    """Which part of the protocol this shows. The agent explains it the first time."""
    plain: bool = False
    """Whether its name works without a slash, too."""


def skill(
    description: str, *, hint: str | None = None, about: str | None = None, plain: bool = False
) -> Callable[[Work], Skill]:
    """Make a skill from a function, and give it the function's name."""

    def make(work: Work) -> Skill:
        name = work.__name__
        return Skill(name=name, description=description, work=work, hint=hint, about=about, plain=plain)

    return make


def plan_entry(step: str, number: int, *, at: int, important: bool = False) -> v2.PlanEntry:
    """Make the entry of a plan for a step: step `at` is in progress, the steps before it are completed."""
    status = "completed" if number < at else "in_progress" if number == at else "pending"
    priority = v2.PlanEntryPriority.HIGH if important else v2.PlanEntryPriority.MEDIUM
    return v2.PlanEntry(content=step, priority=priority, status=v2.PlanEntryStatus(status))


def number(text: str, default: int, *, most: int) -> int:
    """Return the number in a text, up to `most`, or the default for other text."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        return default
    return min(int(digits[:12]), most)


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 file`, `1,200 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
