"""`/tour`, `/help`, and the answer to any prompt that is not a command."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from antiphon.agent import AgentTurn
from antiphon.rehearsal.consent import AUTO, choose, option
from antiphon.rehearsal.skill import Skill, Unable, number, skill, speak
from antiphon.rehearsal.state import memory, report
from antiphon.schema import v2


class Step(Struct, frozen=True):
    title: str
    text: str
    """What the step shows, and which part of the protocol that is."""
    skill: str | None = None
    rest: str = ""


STEPS = (
    Step(
        "Words",
        "You sent a prompt, and I answer in pieces. Each piece is an update, `agent_message_chunk`, and your "
        "client joins them. Thoughts are sent in the same way, as updates of another kind.",
        "think",
    ),
    Step("Markdown", "Text is Markdown. Your client renders headings, lists, tables and code.", "markdown"),
    Step("A picture", "A message may contain images and links, and so may a prompt.", "image"),
    Step(
        "Files",
        "Clients show the work of an agent as tool calls. This one reads a folder. It names the location, so "
        "that an editor can follow.",
        "look",
    ),
    Step(
        "Search",
        "A tool call can show results while it runs. In v2 you can cancel it without ending the turn.",
        "find",
        "the",
    ),
    Step(
        "An edit, if you allow it",
        "A change is shown as a diff, and I ask before I write it. I write one verse to a new file, "
        "`antiphon-tour/song.txt`.",
        "edit",
    ),
    Step("Undo", "Now the same in reverse: I undo my last edit.", "undo"),
    Step(
        "A terminal",
        "Commands run in a terminal. All clients see its output live and in colour, and its exit code. I ask "
        "first.",
        "run",
    ),
    Step(
        "A plan",
        "Longer work has a plan. Its steps change from pending to completed; I really do each of them.",
        "plan",
    ),
    Step(
        "A form",
        "An agent can ask for more than permission. This is an elicitation: a form with every kind of field. "
        "You may decline it.",
        "form",
    ),
    Step(
        "Options", "You can set the options of a session. This one sets whether I ask before I act.", "mode"
    ),
    Step(
        "A subagent",
        "An agent can delegate work. A subagent has a separate session, and you see its work in this one.",
        "subagent",
    ),
    Step(
        "Background work",
        "Some work outlives its turn. This practice continues after the tour, and at its end I start a turn "
        "without a prompt.",
        "background",
        "3",
    ),
    Step(
        "More to try",
        "While an agent works, you can queue prompts, steer it or cancel it: try `/slow`. Open this session "
        "again, in a browser or a terminal: both show everything, and the first answer to a question counts. "
        "`/error`, `/refuse` and `/crash` show what happens when something goes wrong, and `/help` lists "
        "everything.",
    ),
)
_Kind = v2.PermissionOptionKind
CHOICES = (
    option("on", "Continue", _Kind.ALLOW_ONCE),
    option("all", "Continue to the end", _Kind.ALLOW_ALWAYS),
    option("stop", "Stop here", _Kind.REJECT_ONCE),
)


def make_tour(skills: Mapping[str, Skill]) -> Skill:
    @skill("Show all I can do, one ability at a time", hint="the number of a step", plain=True)
    async def tour(turn: AgentTurn, rest: str) -> None:
        first = max(number(rest, 1, most=len(STEPS)), 1)
        asks = turn.session.config["mode"] != AUTO
        edits = len(memory(turn.session).edits)
        for at, step in enumerate(STEPS[first - 1 :], first):
            asked = asks and at > first
            chosen = await _head(turn, at, step, asked=asked)
            if asked and chosen not in (_Kind.ALLOW_ONCE, _Kind.ALLOW_ALWAYS):
                await speak(turn, f"The tour stops here. `/tour {at}` continues with this step.")
                return
            asks = asks and chosen != _Kind.ALLOW_ALWAYS
            await speak(turn, step.text)
            if step.skill == "undo" and len(memory(turn.session).edits) <= edits:
                await speak(turn, "There was no edit on this tour, so there is nothing to undo.")
            elif step.skill is not None:
                try:
                    await skills[step.skill].work(turn, step.rest)
                except Unable as why:
                    await speak(turn, str(why))
                await report(turn.session)

    return tour


async def _head(turn: AgentTurn, at: int, step: Step, *, asked: bool) -> v2.PermissionOptionKind | None:
    """Show the title of a step, and ask whether to continue."""
    title = f"{at} of {len(STEPS)}: {step.title}"
    async with turn.tool_call(title, kind="other", name="tour") as call:
        if not asked:
            return None
        chosen = await choose(turn, call, CHOICES, title=f"Continue with {title}?")
        if chosen not in (_Kind.ALLOW_ONCE, _Kind.ALLOW_ALWAYS):
            await call.fail()
        return chosen


GREETING = """\
I am the rehearsal agent: not a language model, but a few small skills that really do what they say.

- `/tour` shows them one by one, in about five minutes
- `/help` lists them
- plain words work for some: `list files`, `find TODO`, `run date`, `plan`
"""
AGAIN = "I cannot answer that, because I am not a language model. `/help` lists what I can do."


def make_help(skills: list[Skill]) -> Skill:
    """Make the skill that lists these skills and itself."""

    @skill(
        "List what I can do",
        hint="the name of a command",
        plain=True,
        about="`available_commands_update`: the client has the commands from the start, and offers them as "
        "you type.",
    )
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
            + "\n\nAnd what an agent should not do, on request:\n\n"
            + "\n".join(map(_line, bad))
            + "\n",
        )

    return help


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
