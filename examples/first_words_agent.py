"""An agent that speaks first: it greets whoever opens a session, before any prompt.

python examples/first_words_agent.py
"""

from antiphon import Agent, AgentSession, AgentTurn

agent = Agent("first-words", version="1.0")


@agent.on_session
async def greet(session: AgentSession) -> None:
    async with session.turn() as turn:
        await turn.say("Good morning. What shall we do?")


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    await turn.say("Let us do that.")


if __name__ == "__main__":
    agent.run()
