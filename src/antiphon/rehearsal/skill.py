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
    """Says to the user why something is not done. The open tool call fails."""


class Skill(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    work: Work
    hint: str | None = None
    """What the user can type after the name."""
    about: str | None = None
    """Which part of the protocol this shows. It is explained the first time."""
    plain: bool = False
    """Whether its name works without a slash, too."""


class Outcome(Struct, frozen=True):
    reason: str | None = None
    """The stop reason, if any."""
    done: bool = True
    """Whether the skill did something."""


async def carry_out(skill: Skill, turn: AgentTurn, rest: str) -> Outcome:
    """Perform a skill, or say why it is not done."""
    try:
        return Outcome(await skill.work(turn, rest))
    except Unable as why:
        await speak(turn, str(why))
        return Outcome(done=False)


def number(text: str, default: int, *, most: int) -> int:
    """Return the number in a text, up to `most`, or the default for other text."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        return default
    return min(int(digits[:12]), most)


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 file`, `1,200 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
