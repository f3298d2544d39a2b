"""Skills about the session: its options, its context, and work outside of its turns."""

from __future__ import annotations

import asyncio

from antiphon.agent import Agent, AgentSession, AgentTurn, ToolCallWriter
from antiphon.rehearsal.consent import ASK, AUTO, READ_ONLY
from antiphon.rehearsal.skill import Skill, counted, number, pause, slowness, speak
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


async def mode(turn: AgentTurn, rest: str) -> None:
    await _set(turn, "mode", MODES, rest.replace("-", "_").replace(" ", "_"))


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
    """Open a turn as soon as no other is open."""
    await session.idle()
    async with session.turn() as turn:
        await speak(turn, text)


async def usage(turn: AgentTurn, rest: str) -> None:
    await speak(
        turn,
        f"{used(turn.session):,} of {SIZE:,} tokens. I count every character of this session and take "
        f"{CHARACTERS} for a token. No model reads them and nobody pays, so I name no cost.",
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
    await speak(turn, f"{before:,} tokens before, {used(session):,} now. The transcript keeps all of it.")


SKILLS = (
    Skill(
        name="mode",
        description="Set whether I ask before I write or run something",
        hint="ask, auto or read_only",
        work=mode,
        plain=True,
        about="a config option of category `mode`. Clients set it with `session/set_config_option`, and "
        "everybody sees the change.",
    ),
    Skill(
        name="pace",
        description="Set how fast I write",
        hint="calm or quick",
        work=pace,
        plain=True,
        about="another config option. There is a switch as well, `explain`: turn it off, and these remarks "
        "are gone.",
    ),
    Skill(
        name="background",
        description="Continue to work after the turn has ended",
        hint="how many steps",
        work=background,
        about="background work: a tool call that outlives its turn. It is listed beside the session's state "
        "until it is done.",
    ),
    Skill(
        name="nudge",
        description="Start a turn later, without a prompt",
        hint="seconds",
        work=nudge,
        about="a turn that nobody prompted for. In v2 every client sees it begin and end.",
    ),
    Skill(
        name="usage",
        description="Show how full the context is",
        work=usage,
        plain=True,
        about="`usage_update`: tokens in use and the size of the window. An agent with a model adds a cost.",
    ),
    Skill(
        name="compact",
        description="Compact the context",
        work=compact,
        about="a compaction: it is in progress, then it has ended, and its summary is for people to read.",
    ),
)
