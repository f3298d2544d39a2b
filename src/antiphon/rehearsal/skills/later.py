"""`/background` and `/nudge`: what goes on, or begins, when no turn is open."""

from __future__ import annotations

import asyncio

from antiphon.agent import AgentSession, AgentTurn, ToolCallWriter
from antiphon.rehearsal.pace import rest as pause
from antiphon.rehearsal.pace import slowness, speak
from antiphon.rehearsal.skill import Skill, counted, number

LONGEST = 3600


async def background(turn: AgentTurn, rest: str) -> None:
    session, steps = turn.session, max(number(rest, 4, most=LONGEST), 1)

    async def practise(call: ToolCallWriter) -> None:
        for step in range(1, steps + 1):
            await pause(session, 1.0)
            await call.write(f"Bar {step} of {steps}\n")
        session.soon(_speak_up(session, f"The practice is over: {counted(steps, 'bar')}."))

    await session.background(f"Practise {counted(steps, 'bar')}", practise, cancellable=True)
    await speak(turn, "I practise in the background. The turn need not wait for that, and neither need you.")


async def nudge(turn: AgentTurn, rest: str) -> None:
    session = turn.session
    seconds = number(rest, -1, most=LONGEST)
    wait = 3 * slowness(session) if seconds < 0 else float(seconds)

    async def later() -> None:
        await asyncio.sleep(wait)
        await _speak_up(session, "This is the nudge you asked for. Nobody prompted for this turn.")

    session.soon(later())
    await speak(turn, "I shall speak up by myself in a moment." if wait <= 5 else f"In {wait:g} s, then.")


async def _speak_up(session: AgentSession, text: str) -> None:
    """A turn that the agent opens, as soon as no other is open."""
    await session.idle()
    async with session.turn() as turn:
        await speak(turn, text)


SKILLS = (
    Skill(
        name="background",
        description="Work on after the turn has ended",
        hint="how many steps",
        work=background,
        about="background work: a tool call that outlives its turn. It is listed beside the session's state "
        "until it is done.",
    ),
    Skill(
        name="nudge",
        description="Speak up later without being asked",
        hint="seconds",
        work=nudge,
        about="a turn that nobody prompted for. In v2 every client sees it begin and end.",
    ),
)
