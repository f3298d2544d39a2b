"""The agent of the session benchmarks, durable in a SQLite file: `python -m bench.session_agent STORE`.

`stream N` streams N chunks of forty characters; anything else is a turn with nothing in it.
"""

from __future__ import annotations

import sys

from antiphon.agent import Agent, AgentTurn
from antiphon.stores import SQLiteStore

FORTY = "forty characters of text, to the letter."


def make_agent(path: str) -> Agent:
    agent = Agent("bench", version="1.0", store=SQLiteStore(path, durability="process"))

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        match turn.prompt.text.split():
            case ["stream", count]:
                async with turn.message() as message:
                    for _ in range(int(count)):
                        await message.write(FORTY)

    return agent


if __name__ == "__main__":
    make_agent(sys.argv[1]).run()
