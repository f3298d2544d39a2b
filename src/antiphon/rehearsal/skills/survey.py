"""`/plan` and `/subagent`: survey the folder, with a plan or with a subagent."""

from __future__ import annotations

from antiphon.agent import AgentTurn
from antiphon.rehearsal.folder import count_lines, files, root, search, shown
from antiphon.rehearsal.skill import counted, pause, plan_entry, skill, speak

STEPS = ("List the files of this folder", "Count their lines", "Look for TODO notes", "Report the result")


@skill(
    "Survey this folder in four steps, with a plan",
    about="`plan_update`: the whole plan every time, each entry pending, in progress or completed.",
)
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
    text = (
        f"There are {counted(len(paths), 'file')} here, with {counted(sum(lines.values()), 'line')} of text."
    )
    if lines:
        longest = max(lines, key=lambda path: lines[path])
        text += f" The longest is `{shown(session, longest)}` with {counted(lines[longest], 'line')}."
    text += (
        f" {counted(len(notes), 'line mentions', 'lines mention')} TODO." if notes else " None mentions TODO."
    )
    await speak(turn, text)
    await _show(turn, len(STEPS))


async def _show(turn: AgentTurn, at: int) -> None:
    """Send the plan with this step in progress and the steps before it completed."""
    await turn.plan(
        [
            plan_entry(step, number, at=at, important=number == len(STEPS) - 1)
            for number, step in enumerate(STEPS)
        ]
    )


@skill(
    "Let a librarian find the longest text here",
    hint="what to tell it",
    about="`subagent_update`: the librarian works in a separate session, which your client follows together "
    "with this one.",
)
async def subagent(turn: AgentTurn, rest: str) -> None:
    session = turn.session
    answer = "There are no text files here."
    async with turn.subagent("Librarian", description="Knows the longest text", cancellable=True) as child:
        await child.instruct(rest or "Which text here is the longest?")
        async with child.tool_call("Count lines", kind="search") as call:
            lines = await count_lines(await files(root(session)))
            await call.write(f"{counted(len(lines), 'text')} read")
            await pause(session, 0.8)
        if lines:
            longest = max(lines, key=lambda path: lines[path])
            answer = f"It is {shown(session, longest)}, with {counted(lines[longest], 'line')}."
        await child.report(answer)
    await speak(turn, f"My librarian says: {answer}")


SKILLS = (plan, subagent)
