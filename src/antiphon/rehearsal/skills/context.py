"""`/usage` and `/compact`: how full the context is, and how it is made shorter."""

from __future__ import annotations

from antiphon.agent import AgentTurn
from antiphon.rehearsal.context import CHARACTERS, SIZE, characters, used
from antiphon.rehearsal.memory import memory
from antiphon.rehearsal.pace import rest as pause
from antiphon.rehearsal.pace import speak
from antiphon.rehearsal.skill import Skill, counted


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
        name="usage",
        description="How full the context is, counted",
        work=usage,
        plain=True,
        about="`usage_update`: tokens in use and the size of the window. An agent with a model adds a cost.",
    ),
    Skill(
        name="compact",
        description="Make the context shorter",
        work=compact,
        about="a compaction: it is in progress, then it has ended, and its summary is for people to read.",
    ),
)
