"""Misbehaviour on request, to see how clients and hubs handle it."""

from __future__ import annotations

import asyncio
import os

from antiphon.agent import AgentTurn
from antiphon.rehearsal.consent import allowed, option
from antiphon.rehearsal.skill import Skill, counted, number, skill, speak
from antiphon.schema import v2

EXIT_CODE = 70
LONGEST = 3600
_END_IT = (
    option("allow", "End the process", v2.PermissionOptionKind.ALLOW_ONCE),
    option("reject", "Keep it", v2.PermissionOptionKind.REJECT_ONCE),
)


class AskedFor(Exception):
    """The error that `/error` is for."""


@skill(
    "Misbehave: say nothing for a while",
    hint="seconds",
    about="nothing at all: a turn that is still running. A prompt that you send now waits in the queue, or "
    "joins the turn if you steer.",
)
async def slow(turn: AgentTurn, rest: str) -> None:
    seconds = number(rest, 5, most=LONGEST)
    await speak(turn, f"I say nothing for {counted(seconds, 'second')} now. Cancel me, or send something.")
    for _ in range(seconds):
        await asyncio.sleep(1)
        for prompt in turn.steered():
            await speak(turn, f"I got this while I was working: {prompt.text}")
    await speak(turn, "I am back.")


@skill(
    "Misbehave: wait until you cancel",
    about="`tool_call/cancel` (v2): one tool call ended, the turn did not.",
)
async def stuck(turn: AgentTurn, rest: str) -> None:
    async with turn.tool_call("Wait forever", cancellable=True) as call:
        await speak(turn, "I wait until you cancel: this tool call alone, or the whole turn.")
        await asyncio.get_running_loop().create_future()
    if call.cancelled:
        await speak(turn, "You cancelled the tool call, so the turn continues and ends normally.")


@skill("Misbehave: fail with an internal error")
async def error(turn: AgentTurn, rest: str) -> None:
    await speak(
        turn, "I will now fail with an error. Clients do not get its text, because it may be private."
    )
    raise AskedFor("this was asked for with /error")


@skill("Misbehave: refuse, stop reason refusal")
async def refuse(turn: AgentTurn, rest: str) -> str:
    await speak(turn, "I refuse. Your prompt and this answer will not be part of the next prompt.")
    return "refusal"


@skill("Misbehave: run out of tokens in mid-sentence")
async def maxtokens(turn: AgentTurn, rest: str) -> str:
    await speak(turn, "I could write much more about this, but I have just run out of")
    return "max_tokens"


def make_crash(*, may_exit: bool) -> Skill:
    """Make the skill that ends the agent's process, if the agent has its own."""

    @skill("Misbehave: end the agent's process in the middle of a turn, if you allow it")
    async def crash(turn: AgentTurn, rest: str) -> None:
        if not may_exit:
            await speak(
                turn,
                "I run in the same process as your client, so I will not end it. Behind a hub, as with "
                "`antiphon serve`, I would.",
            )
            return
        async with turn.tool_call("End the agent's process", kind="other") as call:
            if await allowed(
                turn, call, "crash", choices=_END_IT, rejected="Then the process keeps running."
            ):
                await speak(turn, "This process ends now, without notice to the client.")
                await asyncio.sleep(0.2)  # so that the message is sent first
                os._exit(EXIT_CODE)

    return crash


SKILLS = (slow, stuck, error, refuse, maxtokens)
