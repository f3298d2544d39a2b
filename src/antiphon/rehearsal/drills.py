"""Drills: plain words with fixed, immediate answers, for programs that need an agent.

Tests, benchmarks and scripts depend on every word here. Skills are for people.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

from antiphon.agent import AgentSession, AgentTurn, ToolCallWriter
from antiphon.errors import SpawnFailed
from antiphon.rehearsal.consent import ASK, READ_ONLY
from antiphon.rehearsal.folder import inside
from antiphon.rehearsal.skill import number, plan_entry

SENTENCE = "Sentence {n} of {total}, sung by one voice and heard by many. "
MOST_SENTENCES = 100_000
MOST_BYTES = 100_000

Drill = Callable[[AgentTurn, str], Awaitable[None]]


async def stream(turn: AgentTurn, rest: str) -> None:
    total = number(rest, 20, most=MOST_SENTENCES)
    async with turn.message() as message:
        for n in range(1, total + 1):
            await message.write(SENTENCE.format(n=n, total=total))


async def list_files(turn: AgentTurn, rest: str) -> None:
    folder = Path(turn.session.cwd)
    async with turn.tool_call(f"List {folder}", kind="read") as call:
        names = await asyncio.to_thread(_names, folder)
        await call.write("\n".join(names) or "(empty)")
    await turn.say(f"{len(names)} entries.")


async def read_file(turn: AgentTurn, rest: str) -> None:
    async with turn.tool_call(f"Read {rest}", kind="read") as call:
        path = inside(turn.session, rest)
        if path is None or not path.is_file():
            await call.fail()
            await turn.say(f"There is no file {rest!r} in this session's folder.")
            return
        data = (await asyncio.to_thread(path.read_bytes))[:MOST_BYTES]
        await call.write(data.decode("utf-8", "replace"))
    await turn.say(f"{rest}: {len(data)} bytes.")


async def run_command(turn: AgentTurn, rest: str) -> None:
    try:
        command = shlex.split(rest) or ["true"]
    except ValueError:
        await turn.say("I cannot read that command: a quotation mark is missing.")
        return
    async with turn.tool_call(rest or "true", kind="execute", raw_input={"command": command}) as call:
        mode = turn.session.config["mode"]
        if mode == READ_ONLY or (mode == ASK and not await call.request_permission()):
            await call.fail()
            await turn.say("Not allowed, so not run.")
            return
        try:
            code = await call.run(command)
        except SpawnFailed:
            await call.fail()
            await turn.say(f"It could not be started: {command[0]}")
            return
    await turn.say(f"It ended with code {code}.")


async def follow_plan(turn: AgentTurn, rest: str) -> None:
    steps = ["Tune", "Sing", "Listen"]
    for done in range(len(steps) + 1):
        await turn.plan([plan_entry(step, number, at=done) for number, step in enumerate(steps)])
    await turn.say("All three steps are done.")


async def set_timer(turn: AgentTurn, rest: str) -> None:
    seconds = number(rest, 3, most=3600)
    session = turn.session

    async def tick(call: ToolCallWriter) -> None:
        await asyncio.sleep(seconds)
        await call.write(f"{seconds} s have passed.")
        session.soon(_ring(session, seconds))

    await session.background(f"Timer of {seconds} s", tick)
    await turn.say(f"The timer runs in the background; you will hear of it in {seconds} s.")


async def _ring(session: AgentSession, seconds: int) -> None:
    await session.idle()
    async with session.turn() as turn:
        await turn.say(f"The timer of {seconds} s has rung.")


DRILLS: dict[str, Drill] = {
    "stream": stream,
    "list": list_files,
    "read": read_file,
    "run": run_command,
    "plan": follow_plan,
    "timer": set_timer,
}


def _names(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name + "/" * entry.is_dir() for entry in entries)
