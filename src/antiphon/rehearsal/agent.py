"""Rehearsal: an agent to practise with. It does six things, by the first word of a prompt.

Written with the public agent API alone, so it also shows what that is good for.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

from antiphon.agent import Agent, AgentSession, AgentTurn, ToolCallWriter
from antiphon.schema import v2
from antiphon.stores.base import Store

HELP = """\
I am the rehearsal agent: no language model, only a few fixed pieces to try a client with.

- `stream N` streams N sentences
- `list` shows the files of this session's folder, `read FILE` one of them
- `run COMMAND` runs a command, once you allow it
- `plan` follows a plan of three steps
- `timer SECONDS` keeps a timer in the background, which reports and then speaks by itself
- anything else gets this answer
"""
SENTENCE = "Sentence {n} of {total}, sung by one voice and heard by many. "
MOST_SENTENCES = 100_000
MOST_BYTES = 100_000

Piece = Callable[[AgentTurn, str], Awaitable[None]]


def make_agent(*, store: Store | None = None) -> Agent:
    """The rehearsal agent, over a store of your choice."""
    agent = Agent("antiphon-rehearsal", version="0.1.0", store=store)

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        word, _, rest = turn.prompt.text.strip().partition(" ")
        await PIECES.get(word.lower(), explain)(turn, rest.strip())

    return agent


async def explain(turn: AgentTurn, rest: str) -> None:
    async with turn.message() as message:
        for line in HELP.splitlines(keepends=True):
            await message.write(line)


async def stream(turn: AgentTurn, rest: str) -> None:
    total = min(_number(rest, 20), MOST_SENTENCES)
    async with turn.message() as message:
        for n in range(1, total + 1):
            await message.write(SENTENCE.format(n=n, total=total))


async def list_files(turn: AgentTurn, rest: str) -> None:
    folder = Path(turn.session.cwd)
    async with turn.tool_call(f"List {folder}", kind="read") as call:
        names = sorted(path.name + "/" * path.is_dir() for path in await asyncio.to_thread(_children, folder))
        await call.write("\n".join(names) or "(empty)")
    await turn.say(f"{len(names)} entries.")


async def read_file(turn: AgentTurn, rest: str) -> None:
    async with turn.tool_call(f"Read {rest}", kind="read") as call:
        path = _inside(Path(turn.session.cwd), rest)
        if path is None or not path.is_file():
            await call.fail()
            await turn.say(f"There is no file {rest!r} in this session's folder.")
            return
        data = (await asyncio.to_thread(path.read_bytes))[:MOST_BYTES]
        await call.write(data.decode("utf-8", "replace"))
    await turn.say(f"{rest}: {len(data)} bytes.")


async def run_command(turn: AgentTurn, rest: str) -> None:
    command = shlex.split(rest) or ["true"]
    async with turn.tool_call(rest or "true", kind="execute", raw_input={"command": command}) as call:
        if not await call.request_permission():
            await call.fail()
            await turn.say("Not allowed, so not run.")
            return
        code = await call.run(command)
    await turn.say(f"It ended with code {code}.")


async def follow_plan(turn: AgentTurn, rest: str) -> None:
    steps = ["Tune", "Sing", "Listen"]
    for done in range(len(steps) + 1):
        await turn.plan([_entry(step, at, done) for at, step in enumerate(steps)])
    await turn.say("All three steps are done.")


async def set_timer(turn: AgentTurn, rest: str) -> None:
    seconds = min(_number(rest, 3), 3600)
    session = turn.session

    async def tick(call: ToolCallWriter) -> None:
        await asyncio.sleep(seconds)
        await call.write(f"{seconds} s have passed.")
        session.soon(_speak(session, seconds))

    await session.background(f"Timer of {seconds} s", tick)
    await turn.say(f"The timer runs in the background; you will hear of it in {seconds} s.")


async def _speak(session: AgentSession, seconds: int) -> None:
    async with session.turn() as turn:
        await turn.say(f"The timer of {seconds} s has rung.")


PIECES: dict[str, Piece] = {
    "stream": stream,
    "list": list_files,
    "read": read_file,
    "run": run_command,
    "plan": follow_plan,
    "timer": set_timer,
}


def _number(text: str, default: int) -> int:
    return int(text) if text.isdigit() and len(text) < 9 else default


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def _inside(folder: Path, name: str) -> Path | None:
    """A file of the folder, links resolved; None for what leads out of it."""
    if not name or "\0" in name:
        return None
    path = (folder / name).resolve()
    return path if path.is_relative_to(folder.resolve()) else None


def _entry(step: str, at: int, done: int) -> v2.PlanEntry:
    status = "completed" if at < done else "in_progress" if at == done else "pending"
    return v2.PlanEntry(content=step, priority=v2.PlanEntryPriority.MEDIUM, status=v2.PlanEntryStatus(status))
