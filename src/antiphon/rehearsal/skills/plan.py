"""`/plan`: four small steps of real work, and a plan that shows where it is."""

from __future__ import annotations

from antiphon.agent import AgentTurn
from antiphon.rehearsal.folder import count_lines, files, root, search, shown
from antiphon.rehearsal.pace import rest as pause
from antiphon.rehearsal.pace import speak
from antiphon.rehearsal.skill import Skill, counted
from antiphon.schema import v2

STEPS = ("List the files of this folder", "Count their lines", "Look for TODO notes", "Tell what was found")


async def plan(turn: AgentTurn, rest: str) -> None:
    session = turn.session
    await _show(turn, -1)
    await pause(session, 0.6)

    await _show(turn, 0)
    async with turn.tool_call(STEPS[0], kind="read") as call:
        paths = await files(root(session))
        await call.write(counted(len(paths), "file"))
        await pause(session, 0.6)

    await _show(turn, 1)
    async with turn.tool_call(STEPS[1], kind="read") as call:
        lines = await count_lines(paths)
        await call.write(f"{counted(sum(lines.values()), 'line')} in {counted(len(lines), 'text')}")
        await pause(session, 0.6)

    await _show(turn, 2)
    async with turn.tool_call(STEPS[2], kind="search") as call:
        notes = [note async for some in search(list(lines), "TODO") for note in some]
        await call.write(counted(len(notes), "line"))
        for note in notes[:5]:
            await call.locate(note.path, line=note.line)
        await pause(session, 0.6)

    await _show(turn, 3)
    told = (
        f"There are {counted(len(paths), 'file')} here, with {counted(sum(lines.values()), 'line')} of text."
    )
    if lines:
        longest = max(lines, key=lambda path: lines[path])
        told += f" The longest is `{shown(session, longest)}` with {counted(lines[longest], 'line')}."
    told += (
        f" {counted(len(notes), 'line mentions', 'lines mention')} TODO." if notes else " None mentions TODO."
    )
    await speak(turn, told)
    await _show(turn, len(STEPS))


async def _show(turn: AgentTurn, at: int) -> None:
    """The plan while this step is being done; those before it are completed."""
    await turn.plan(
        [
            v2.PlanEntry(
                content=step,
                priority=v2.PlanEntryPriority.HIGH
                if number == len(STEPS) - 1
                else v2.PlanEntryPriority.MEDIUM,
                status=v2.PlanEntryStatus(
                    "completed" if number < at else "in_progress" if number == at else "pending"
                ),
            )
            for number, step in enumerate(STEPS)
        ]
    )


SKILLS = (
    Skill(
        name="plan",
        description="Take stock of this folder in four steps, with a plan",
        work=plan,
        about="`plan_update`: the whole plan every time, each entry pending, in progress or completed.",
    ),
)
