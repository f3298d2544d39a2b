"""An agent that changes its messages: `say TEXT`, `delete` and `undo`, which are done to the last message."""

from __future__ import annotations

from antiphon.agent import Agent, AgentTurn

agent = Agent("editing", version="1")
said: dict[str, str] = {}


@agent.on_prompt
async def work(turn: AgentTurn) -> None:
    word, _, rest = turn.prompt.text.partition(" ")
    if word == "say":
        said[turn.session.id] = await turn.say(rest)
    elif word == "delete":
        await turn.session.delete_message(said[turn.session.id])
    elif word == "undo":
        await turn.session.undo_edit(said[turn.session.id])


agent.run()
