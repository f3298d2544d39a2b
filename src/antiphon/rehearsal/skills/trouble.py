"""Misbehaviour on request, to see how clients and hubs handle it."""

from __future__ import annotations

import asyncio
import os

from antiphon.agent import AgentTurn
from antiphon.rehearsal.consent import allowed, option
from antiphon.rehearsal.skill import Skill, counted, number, speak
from antiphon.schema import v2

EXIT_CODE = 70
LONGEST = 3600
_END_IT = (
    option("allow", "End the process", v2.PermissionOptionKind.ALLOW_ONCE),
    option("reject", "Rather not", v2.PermissionOptionKind.REJECT_ONCE),
)


class AskedFor(Exception):
    """The error that `/error` is for."""


async def slow(turn: AgentTurn, rest: str) -> None:
    seconds = number(rest, 5, most=LONGEST)
    await speak(turn, f"I say nothing for {counted(seconds, 'second')} now. Cancel me, or send something.")
    for _ in range(seconds):
        await asyncio.sleep(1)
        for prompt in turn.steered():
            await speak(turn, f"I heard you while I was at it: {prompt.text}")
    await speak(turn, "There I am again.")


async def stuck(turn: AgentTurn, rest: str) -> None:
    async with turn.tool_call("Wait for ever", cancellable=True) as call:
        await speak(turn, "I wait until you cancel: this tool call alone, or the whole turn.")
        await asyncio.get_running_loop().create_future()
    if call.cancelled:
        await speak(turn, "You cancelled the tool call, so the turn goes on, and ends well.")


async def error(turn: AgentTurn, rest: str) -> None:
    await speak(turn, "I run into an error now. You will not learn what it says: that may be private.")
    raise AskedFor("this was asked for with /error")


async def refuse(turn: AgentTurn, rest: str) -> str:
    await speak(turn, "I refuse. What you said and what I say now will not be in the next prompt.")
    return "refusal"


async def max_tokens(turn: AgentTurn, rest: str) -> str:
    await speak(turn, "I could go on about this for a long time, and would, if I had not just run out of")
    return "max_tokens"


def make_crash(*, may_exit: bool) -> Skill:
    """Make the skill that ends the agent's process, if the agent has its own."""

    async def crash(turn: AgentTurn, rest: str) -> None:
        if not may_exit:
            await speak(
                turn,
                "I live in the same process as your client here, so I will not. Behind a hub, as with "
                "`antiphon serve`, I would.",
            )
            return
        async with turn.tool_call("End the agent's process", kind="other") as call:
            if await allowed(turn, call, "crash", choices=_END_IT, rejected="Then I live on."):
                await speak(turn, "This process ends now, without a word to anybody.")
                await asyncio.sleep(0.2)  # it is on its way out
                os._exit(EXIT_CODE)

    return Skill(
        name="crash",
        description="Misbehave: end the agent's process in the middle of a turn, once you allow it",
        work=crash,
    )


SKILLS = (
    Skill(
        name="slow",
        description="Misbehave: say nothing for a while",
        hint="seconds",
        work=slow,
        about="nothing at all: a turn that is still running. What you send meanwhile waits in the queue, or "
        "joins the turn if you steer.",
    ),
    Skill(
        name="stuck",
        description="Misbehave: wait until you cancel",
        work=stuck,
        about="`tool_call/cancel` (v2): one tool call ended, the turn did not.",
    ),
    Skill(name="error", description="Misbehave: fail with an internal error", work=error),
    Skill(name="refuse", description="Misbehave: refuse, stop reason refusal", work=refuse),
    Skill(name="maxtokens", description="Misbehave: run out of tokens in mid-sentence", work=max_tokens),
)
