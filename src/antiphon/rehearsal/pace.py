"""Pace: words come one after the other, at a speed that people like to read, or at once.

The session's option `pace` chooses; the environment variable ANTIPHON_REHEARSAL_PACE is a factor on top of
it, and 0 takes every delay away.
"""

from __future__ import annotations

import asyncio
import math
import os
import re

from antiphon.agent import AgentSession, AgentTurn, MessageWriter

VARIABLE = "ANTIPHON_REHEARSAL_PACE"
A_WORD = 0.025
"""Seconds between two words of a calm sentence."""
_WORDS = re.compile(r"\s*\S+\s*")


def slowness(session: AgentSession) -> float:
    """What a delay is multiplied by."""
    if session.config.get("pace", "calm") != "calm":
        return 0.0
    try:
        factor = float(os.environ.get(VARIABLE, "1"))
    except ValueError:
        return 1.0
    return min(factor, 10.0) if math.isfinite(factor) and factor > 0 else 0.0


async def rest(session: AgentSession, seconds: float) -> None:
    """A pause for whoever reads."""
    await asyncio.sleep(seconds * slowness(session))


async def speak(turn: AgentTurn, text: str) -> None:
    """A message, word by word."""
    async with turn.message() as message:
        await write(turn, message, text)


async def think(turn: AgentTurn, text: str) -> None:
    """A thought, word by word."""
    async with turn.thought() as thought:
        await write(turn, thought, text)


async def write(turn: AgentTurn, message: MessageWriter, text: str) -> None:
    delay = A_WORD * slowness(turn.session)
    for word in _WORDS.findall(text):
        await message.write(word)
        await asyncio.sleep(delay)
