"""An agent of our library that takes prompts into its open turn: it works until one of them is `stop`."""

from __future__ import annotations

import asyncio

from antiphon.agent import Agent, AgentTurn

agent = Agent("steered", version="1", busy="steer")


@agent.on_prompt
async def work(turn: AgentTurn) -> None:
    texts = [turn.prompt.text]
    await turn.say("working")
    while texts[-1] != "stop":
        await asyncio.sleep(0.01)  # its work
        texts += [prompt.text for prompt in turn.steered()]
    await turn.say("done: " + " + ".join(texts))


agent.run()
