"""The smallest agent: `python examples/smallest_agent.py`, started by any ACP client."""

from antiphon import Agent, AgentTurn

agent = Agent("smallest", version="1.0")


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    async with turn.message() as message:
        for word in ("You ", "said: ", turn.prompt.text):
            await message.write(word)


if __name__ == "__main__":
    agent.run()
