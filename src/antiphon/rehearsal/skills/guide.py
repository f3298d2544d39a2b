"""`/tour` and `/help`, and the answer to a prompt that asks for nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from antiphon.agent import AgentTurn
from antiphon.rehearsal.consent import AUTO, choose, option
from antiphon.rehearsal.skill import Skill, carry_out, number, speak
from antiphon.rehearsal.state import memory, report
from antiphon.schema import v2


class Step(Struct, frozen=True):
    title: str
    told: str
    """What the step shows, and which part of the protocol that is."""
    skill: str | None = None
    rest: str = ""


STEPS = (
    Step(
        "Words",
        "You typed a prompt, and I answer in pieces: each is an update, `agent_message_chunk`, and your "
        "client puts them together. What I think aloud comes the same way, marked as thoughts.",
        "think",
    ),
    Step(
        "Markdown",
        "Text is Markdown, which your client draws: headings, lists, tables, code.",
        "markdown",
    ),
    Step(
        "A picture",
        "A message may hold images and links between its words, and so may a prompt.",
        "image",
    ),
    Step(
        "Files",
        "What an agent does is shown as tool calls. This one reads; it names the place it looks at, so that "
        "an editor can follow.",
        "look",
    ),
    Step(
        "Search",
        "A tool call may show its results while it is still at work, and in v2 you may cancel it alone.",
        "find",
        "the",
    ),
    Step(
        "An edit, if you allow it",
        "A change is a diff, and before it is written you are asked. I write one verse into a file of my "
        "own, `antiphon-tour/song.txt`.",
        "edit",
    ),
    Step(
        "And back",
        "The same again, the other way round: my last edit is taken back.",
        "undo",
    ),
    Step(
        "A terminal",
        "Commands run in a terminal that everybody sees, live, in colour, to the exit code. You are asked "
        "first.",
        "run",
    ),
    Step(
        "A plan",
        "Longer work has a plan. Watch the steps move from pending to completed; each is really done.",
        "plan",
    ),
    Step(
        "A form",
        "An agent can ask for more than a yes: this is an elicitation, a form with a field of every kind. "
        "Decline it if you like.",
        "form",
    ),
    Step(
        "Options",
        "A session has options that you set and I obey. This one decides whether I ask before I act.",
        "mode",
    ),
    Step(
        "A subagent",
        "Work can be handed on: a subagent has a session of its own, and you see it at work in this one.",
        "subagent",
    ),
    Step(
        "Background work",
        "Some work outlives its turn. This practice goes on when the tour is over, and then I speak up by "
        "myself.",
        "background",
        "3",
    ),
    Step(
        "The rest is yours",
        "While an agent works you can queue prompts, steer it or cancel it: try `/slow`. Open this session a "
        "second time, in a browser or a terminal: both see everything, and whoever answers a question first "
        "has answered it. `/error`, `/refuse` and `/crash` show what happens when something goes wrong, and "
        "`/help` lists everything.",
    ),
)
_Kind = v2.PermissionOptionKind
CHOICES = (
    option("on", "Go on", _Kind.ALLOW_ONCE),
    option("all", "Go on to the end", _Kind.ALLOW_ALWAYS),
    option("stop", "Stop here", _Kind.REJECT_ONCE),
)


def make_tour(skills: Mapping[str, Skill]) -> Skill:
    async def tour(turn: AgentTurn, rest: str) -> None:
        first = max(number(rest, 1, most=len(STEPS)), 1)
        asks = turn.session.config["mode"] != AUTO
        edits = len(memory(turn.session).edits)
        for at, step in enumerate(STEPS[first - 1 :], first):
            asked = asks and at > first
            chosen = await _head(turn, at, step, asked=asked)
            if asked and chosen not in (_Kind.ALLOW_ONCE, _Kind.ALLOW_ALWAYS):
                await speak(turn, f"The tour stops here. `/tour {at}` goes on with this step.")
                return
            asks = asks and chosen != _Kind.ALLOW_ALWAYS
            await speak(turn, step.told)
            if step.skill == "undo" and len(memory(turn.session).edits) <= edits:
                await speak(turn, "There was no edit on this tour, so there is none to take back.")
            elif step.skill is not None:
                await carry_out(skills[step.skill], turn, step.rest)
                await report(turn.session)

    return Skill(
        name="tour",
        description="Show all I can do, one ability at a time",
        hint="the number of a step",
        work=tour,
        plain=True,
    )


async def _head(turn: AgentTurn, at: int, step: Step, *, asked: bool) -> v2.PermissionOptionKind | None:
    """Show the title of a step, and ask whether to continue."""
    title = f"{at} of {len(STEPS)}: {step.title}"
    async with turn.tool_call(title, kind="other", name="tour") as call:
        if not asked:
            return None
        chosen = await choose(turn, call, CHOICES, title=f"Go on with {title}?")
        if chosen not in (_Kind.ALLOW_ONCE, _Kind.ALLOW_ALWAYS):
            await call.fail()
        return chosen


GREETING = """\
I am the rehearsal agent: no language model, but a few small skills that really do what they say.

- `/tour` shows them one by one, in about five minutes
- `/help` lists them
- plain words work for some: `list files`, `find TODO`, `run date`, `plan`
"""
AGAIN = "I have no answer to that: I am no language model. `/help` lists what I can do."


def make_help(skills: list[Skill]) -> Skill:
    """Make the skill that lists these skills and itself."""

    async def help(turn: AgentTurn, rest: str) -> None:
        wanted = next((skill for skill in skills if skill.name == rest.removeprefix("/")), None)
        if wanted is not None:
            about = f"\n\nIn the protocol this is {wanted.about}" if wanted.about else ""
            await speak(turn, f"{_line(wanted)}{about}")
            return
        good = [skill for skill in skills if not _misbehaves(skill)]
        bad = [skill for skill in skills if _misbehaves(skill)]
        await speak(
            turn,
            "What I can do:\n\n"
            + "\n".join(map(_line, good))
            + "\n\nAnd what nobody should, on request:\n\n"
            + "\n".join(map(_line, bad))
            + "\n",
        )

    return Skill(
        name="help",
        description="List what I can do",
        hint="the name of a command",
        work=help,
        plain=True,
        about="`available_commands_update`: the client knows these commands from the first moment on, and "
        "offers them as you type.",
    )


async def greet(turn: AgentTurn) -> None:
    """Greet without delays: programs that only need some answer get this, too."""
    attached = [line for line in map(_attached, turn.prompt.content) if line]
    if attached:
        await turn.say("I got " + ", ".join(attached) + ".")
        return
    prompts = sum(message.type == "user" for message in turn.session.fold.messages)
    async with turn.message() as message:
        for line in (GREETING if prompts <= 1 else AGAIN).splitlines(keepends=True):
            await message.write(line)


def _attached(block: v2.ContentBlock) -> str:
    match block:
        case v2.ImageContent() | v2.AudioContent():
            return f"`{block.mime_type}` of {len(block.data) * 3 // 4:,} bytes"
        case v2.ResourceLink():
            return f"a link to `{block.name}`"
        case v2.EmbeddedResource():
            return f"all of `{block.resource.uri}`"
    return ""


def _line(skill: Skill) -> str:
    hint = "" if skill.hint is None else f" ({skill.hint})"
    return f"- `/{skill.name}`{hint}: {skill.description.removeprefix('Misbehave: ')}"


def _misbehaves(skill: Skill) -> bool:
    return skill.description.startswith("Misbehave: ")
