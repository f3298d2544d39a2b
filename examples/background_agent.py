"""An agent whose work goes on after its turn: `python examples/background_agent.py`."""

import asyncio

from antiphon import Agent, AgentTurn
from antiphon.agent import ToolCallWriter

agent = Agent("background", version="1.0")


@agent.on_prompt
async def start(turn: AgentTurn) -> None:
    async def watch(call: ToolCallWriter) -> None:
        for n in range(3):
            await asyncio.sleep(0.1)
            await call.write(f"build step {n + 1} of 3\n")

    await turn.session.background("Watch the build", watch)
    await turn.say("I am watching the build; ask me anything meanwhile.")


if __name__ == "__main__":
    agent.run()
