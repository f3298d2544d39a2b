"""Skills about the session: its options, its context, and work outside of its turns."""

from __future__ import annotations

import asyncio

from antiphon.agent import Agent, AgentSession, AgentTurn, ToolCallWriter
from antiphon.rehearsal.consent import ASK, AUTO, READ_ONLY
from antiphon.rehearsal.skill import counted, number, pause, skill, slowness, speak
from antiphon.rehearsal.state import CHARACTERS, SIZE, characters, memory, used
from antiphon.schema import v2

MODES = {
    ASK: ("Ask first", "Permission is asked before anything is written or run"),
    AUTO: ("Just do it", "Everything is allowed"),
    READ_ONLY: ("Read only", "Nothing is written and nothing is run"),
}
PACES = {
    "calm": ("Calm", "Words come at a speed to read them"),
    "quick": ("Quick", "Everything comes at once"),
}


def declare_options(agent: Agent) -> None:
    agent.config("mode", name="Mode", category="mode", options=_choices(MODES))
    agent.config("pace", name="Pace", options=_choices(PACES))
    agent.config(
        "explain",
        name="Explain",
        description="Explain which part of the protocol each skill shows, the first time",
        default=True,
    )


def _choices(values: dict[str, tuple[str, str]]) -> list[v2.SessionConfigSelectOption]:
    return [
        v2.SessionConfigSelectOption(value=v2.SessionConfigValueId(value), name=name, description=about)
        for value, (name, about) in values.items()
    ]


@skill(
    "Set whether I ask before I write or run something",
    hint="ask, auto or read_only",
    plain=True,
    about="a config option of category `mode`. Clients set it with `session/set_config_option`, and "
    "all clients see the change.",
)
async def mode(turn: AgentTurn, rest: str) -> None:
    await _set(turn, "mode", MODES, rest.replace("-", "_").replace(" ", "_"))


@skill(
    "Set how fast I write",
    hint="calm or quick",
    plain=True,
    about="another config option. If you turn off a third one, `explain`, these remarks stop.",
)
async def pace(turn: AgentTurn, rest: str) -> None:
    await _set(turn, "pace", PACES, rest)


async def _set(turn: AgentTurn, id: str, values: dict[str, tuple[str, str]], chosen: str) -> None:
    wanted = chosen.lower()
    if wanted in values:
        await turn.session.set_config(id, wanted)
        await speak(turn, f"{values[wanted][1]} from now on.")
        return
    now = turn.session.config[id]
    lines = "\n".join(
        f"- `/{id} {value}`: {about[0].lower()}{about[1:]}{', as it is now' * (value == now)}"
        for value, (_, about) in values.items()
    )
    known = "" if not chosen else f"There is no {id} `{chosen}`. "
    await speak(turn, f"{known}The {id} of this session can be:\n\n{lines}\n")


LONGEST = 3600


@skill(
    "Continue to work after the turn has ended",
    hint="how many steps",
    about="background work: a tool call that outlives its turn. Clients see it as running until it ends.",
)
async def background(turn: AgentTurn, rest: str) -> None:
    session, steps = turn.session, max(number(rest, 4, most=LONGEST), 1)

    async def practise(call: ToolCallWriter) -> None:
        for step in range(1, steps + 1):
            await pause(session, 1.0)
            await call.write(f"Bar {step} of {steps}\n")
        session.soon(_speak_up(session, f"The practice is over: {counted(steps, 'bar')}."))

    await session.background(f"Practise {counted(steps, 'bar')}", practise, cancellable=True)
    await speak(turn, "I practise in the background. Neither the turn nor you have to wait for it.")


@skill(
    "Start a turn later, without a prompt",
    hint="seconds",
    about="a turn without a prompt. In v2 every client sees it begin and end.",
)
async def nudge(turn: AgentTurn, rest: str) -> None:
    session = turn.session
    seconds = number(rest, -1, most=LONGEST)
    wait = 3 * slowness(session) if seconds < 0 else float(seconds)

    async def later() -> None:
        await asyncio.sleep(wait)
        await _speak_up(session, "This is the nudge that you asked for. No prompt started this turn.")

    session.soon(later())
    await speak(
        turn, "I will start a turn in a moment." if wait <= 5 else f"I will start a turn in {wait:g} s."
    )


async def _speak_up(session: AgentSession, text: str) -> None:
    """Open a turn as soon as no other is open."""
    await session.idle()
    async with session.turn() as turn:
        await speak(turn, text)


@skill(
    "Show how full the context is",
    plain=True,
    about="`usage_update`: tokens in use and the size of the window. An agent with a model adds a cost.",
)
async def usage(turn: AgentTurn, rest: str) -> None:
    await speak(
        turn,
        f"{used(turn.session):,} of {SIZE:,} tokens. I count the characters of this session, "
        f"{CHARACTERS} for each token. No model reads them, so they cost nothing.",
    )


@skill(
    "Compact the context",
    about="a compaction. Clients see it begin and end, and users can read its summary.",
)
async def compact(turn: AgentTurn, rest: str) -> None:
    session = turn.session
    before, fold = used(session), session.fold
    prompts = sum(message.type == "user" for message in fold.messages)
    summary = (
        f"{counted(prompts, 'prompt')}, {counted(len(fold.messages) - prompts, 'message')} of mine "
        f"and {counted(len(fold.tool_calls), 'tool call')}."
    )
    async with session.compaction() as compaction:
        await pause(session, 1.0)
        await compaction.write(summary)
        memory(session).forgotten = max(characters(session) - len(summary), 0)
    await speak(
        turn, f"{before:,} tokens before, {used(session):,} now. The transcript still has everything."
    )


SKILLS = (mode, pace, background, nudge, usage, compact)
