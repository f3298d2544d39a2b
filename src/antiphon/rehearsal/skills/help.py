"""`/help`, and what is said to a prompt that nothing else answers."""

from __future__ import annotations

from antiphon.agent import AgentTurn
from antiphon.rehearsal.pace import speak
from antiphon.rehearsal.skill import Skill
from antiphon.schema import v2

GREETING = """\
I am the rehearsal agent: no language model, but a few small skills that really do what they say.

- `/tour` shows them one by one, in about five minutes
- `/help` lists them
- plain words work for some: `list files`, `find TODO`, `run date`, `plan`
"""
AGAIN = "I have no answer to that: I am no language model. `/help` lists what I can do."


def make_help(skills: list[Skill]) -> Skill:
    """It lists these, itself among them, and what it says is made of what they are called."""

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
    """Without a delay: this is also what programs get that only want any answer."""
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
