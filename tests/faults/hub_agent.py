"""A busy agent to stand behind a hub: `python -m tests.faults.hub_agent NOTES [STORE]`.

What it does is decided by the prompt's text alone, and everything it says is counted. It notes each prompt
that it takes, each answer that it gets, and whatever it has to complain about, in files beside NOTES.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
from pathlib import Path

from antiphon.agent import Agent, AgentTurn, MessageWriter, ToolCallWriter
from antiphon.stores import SQLiteStore

NOTES = Path(sys.argv[1])
PACE = 0.002


def note(kind: str, text: str) -> None:
    """One line, as a whole, for whoever comes after us."""
    file = os.open(NOTES.with_suffix(f".{kind}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, f"{text}\n".encode())
    os.close(file)


async def count(writer: MessageWriter | ToolCallWriter, chance: random.Random, upto: int) -> None:
    for number in range(chance.randint(1, upto)):
        await writer.write(f"{number} ")
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() * PACE)


async def work(turn: AgentTurn) -> None:
    said = turn.prompt.text.splitlines()[-1]
    note("prompts", said)
    chance = random.Random(said)
    for step in range(chance.randint(1, 3)):
        async with turn.thought() as thought:
            await count(thought, chance, 20)
        async with turn.message() as message:
            await count(message, chance, 80)
        if chance.random() < 0.6:
            async with turn.tool_call(f"step {step} of {said}", kind="execute") as call:
                if chance.random() < 0.6:
                    allowed = await call.request_permission()
                    note("answers", f"{step} of {said}: {allowed}")
                await count(call, chance, 30)


class Complaints(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note("complaints", self.format(record))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, handlers=[Complaints()])
    agent = Agent("busy", version="1.0", store=SQLiteStore(sys.argv[2]) if sys.argv[2:] else None)
    agent.on_prompt(work)
    agent.run()
