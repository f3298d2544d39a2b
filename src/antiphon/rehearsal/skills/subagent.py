"""`/subagent`: somebody else does it, in a session of its own."""

from __future__ import annotations

from antiphon.agent import AgentTurn
from antiphon.rehearsal.folder import count_lines, files, root, shown
from antiphon.rehearsal.pace import rest as pause
from antiphon.rehearsal.pace import speak
from antiphon.rehearsal.skill import Skill, counted


async def subagent(turn: AgentTurn, rest: str) -> None:
    session = turn.session
    told = "Nothing was found."
    async with turn.subagent("Librarian", description="Knows the longest text", cancellable=True) as child:
        await child.instruct(rest or "Which text here is the longest?")
        async with child.tool_call("Count lines", kind="search") as call:
            lines = await count_lines(await files(root(session)))
            await call.write(f"{counted(len(lines), 'text')} read")
            await pause(session, 0.8)
        if lines:
            longest = max(lines, key=lambda path: lines[path])
            told = f"It is {shown(session, longest)}, with {counted(lines[longest], 'line')}."
        await child.report(told)
    await speak(turn, f"My librarian says: {told}")


SKILLS = (
    Skill(
        name="subagent",
        description="Let a librarian find the longest text here",
        hint="what to tell it",
        work=subagent,
        about="`subagent_update`: the librarian has a session of its own, which you follow by following "
        "this one.",
    ),
)
