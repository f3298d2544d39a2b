"""The session's options, as clients set them, and `/mode` and `/pace`, which set them from inside."""

from __future__ import annotations

from antiphon.agent import Agent, AgentTurn
from antiphon.rehearsal.consent import ASK, AUTO, READ_ONLY
from antiphon.rehearsal.pace import speak
from antiphon.rehearsal.skill import Skill
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
        description="Tell which part of the protocol was seen, the first time it is",
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


SKILLS = (
    Skill(
        name="mode",
        description="Whether I ask before I write or run something",
        hint="ask, auto or read_only",
        work=mode,
        plain=True,
        about="a config option of category `mode`. Clients set it with `session/set_config_option`, and "
        "everybody sees the change.",
    ),
    Skill(
        name="pace",
        description="How fast I speak",
        hint="calm or quick",
        work=pace,
        plain=True,
        about="another config option. There is a switch as well, `explain`: turn it off, and these remarks "
        "are gone.",
    ),
)
