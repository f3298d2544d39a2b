"""An agent that is busy, to be killed: `python -m tests.faults.busy_agent STORE`.

Everything it says is numbered, and what it does is decided by the prompt's text alone: so whoever reads it
knows what has to be there, and what may not be there twice.
"""

from __future__ import annotations

import asyncio
import random
import sys
from typing import Any

from antiphon.agent import Agent, AgentTurn
from antiphon.stores import SQLiteStore


def make_agent(path: str) -> Agent:
    agent = Agent("busy", version="1.0", store=SQLiteStore(path))

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        chance = random.Random(turn.prompt.text)

        async def count(writer: Any, upto: int) -> None:
            for number in range(chance.randint(1, upto)):
                await writer.write(f"{number} ")
                if chance.random() < 0.2:
                    await asyncio.sleep(0)  # commits come between, of few events and of many

        for step in range(chance.randint(1, 4)):
            await turn.plan([f"step {number}" for number in range(step + 1)])
            async with turn.thought() as thought:
                await count(thought, 60)
            async with turn.message() as message:
                await count(message, 200)
                async with turn.tool_call(f"step {step}", kind="execute") as call:
                    if chance.random() < 0.6:
                        await call.request_permission()
                    await count(call, 100)
                await count(message, 10)
            turn.steered()

    return agent


if __name__ == "__main__":
    make_agent(sys.argv[1]).run()
