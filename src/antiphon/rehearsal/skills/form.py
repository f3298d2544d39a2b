"""`/form` and `/visit`: questions other than permissions."""

from __future__ import annotations

import datetime
from enum import Enum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from antiphon.agent import AgentTurn, Email
from antiphon.rehearsal.skill import Unable, skill, speak

ADDRESS = "https://agentclientprotocol.com"


class Part(Enum):
    SOPRANO = "soprano"
    ALTO = "alto"
    TENOR = "tenor"
    BASS = "bass"


class Concert(Struct):
    """One field of every kind that a form can have."""

    title: Annotated[str, Meta(title="What is its title?", min_length=2, max_length=60)]
    day: Annotated[datetime.date | None, Meta(title="On which day?")] = None
    contact: Annotated[Email | None, Meta(title="Contact", description="An e-mail address")] = None
    singers: Annotated[int, Meta(title="How many singers?", ge=1, le=40)] = 8
    tempo: Annotated[float, Meta(title="How fast?", description="Beats a minute", ge=40, le=208)] = 96.0
    key: Annotated[Literal["C major", "D minor", "E flat major"], Meta(title="In which key?")] = "D minor"
    begins: Annotated[Part, Meta(title="Who begins?")] = Part.ALTO
    instruments: Annotated[
        list[Literal["organ", "lute", "viol", "drum"]], Meta(title="With which instruments?")
    ] = msgspec.field(default_factory=list)
    encore: Annotated[bool, Meta(title="An encore?")] = True


@skill(
    "Ask you to fill in a form, with a field of every kind",
    plain=True,
    about="`elicitation/create` in mode `form`: text, dates, numbers, choices, yes or no. The client "
    "and I both checked the answer.",
)
async def form(turn: AgentTurn, rest: str) -> None:
    if not turn.can_ask("form"):
        raise Unable("Your client does not support forms, so I cannot ask.")
    answer = await turn.ask("Let us plan a concert. Your answers are not stored.", Concert)
    if answer.value is not None:
        await speak(turn, _table(answer.value))
    elif answer.declined:
        await speak(turn, "You declined, so there is no concert.")
    else:
        await speak(turn, "The form was not filled in, so there is no concert.")


@skill(
    "Ask you to open an address",
    about="`elicitation/create` in mode `url`, for data that must not pass through the agent, such as "
    "logins, payments and secrets.",
)
async def visit(turn: AgentTurn, rest: str) -> None:
    if not turn.can_ask("url"):
        raise Unable(f"Your client does not open addresses for agents. This one is <{ADDRESS}>.")
    consent = await turn.ask_url("This is the documentation of the protocol.", ADDRESS)
    if consent.accepted:
        await consent.complete()
        await speak(turn, "You agreed to open it. I cannot see whether you did.")
    else:
        await speak(turn, "You did not agree, so it was not opened.")


def _table(concert: Concert) -> str:
    rows = {
        "Title": concert.title.replace("|", "\\|"),
        "Day": "open" if concert.day is None else concert.day.isoformat(),
        "Contact": concert.contact or "none",
        "Singers": str(concert.singers),
        "Tempo": f"{concert.tempo:g}",
        "Key": concert.key,
        "Begins": concert.begins.value,
        "Instruments": ", ".join(concert.instruments) or "none",
        "Encore": "yes" if concert.encore else "no",
    }
    lines = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return f"This is what you filled in:\n\n| | |\n|---|---|\n{lines}\n"


SKILLS = (form, visit)
