"""An agent that plans, uses a tool and asks first: `python examples/tool_agent.py`.

What it does is decided by the prompt: `permission` asks before it acts, `wait` works until it is cancelled.
"""

import asyncio

from antiphon import Agent, AgentTurn

agent = Agent("tools", version="1.0")


@agent.on_prompt
async def work(turn: AgentTurn) -> str | None:
    await turn.plan(["Look", "Ask", "Act"])
    if turn.prompt.text == "wait":
        async with turn.message() as message:
            await message.write("waiting")
            try:
                await asyncio.Event().wait()
            finally:
                await message.write(" no longer")  # late, and still before the end of the turn
    if turn.prompt.text == "refuse":
        return "refusal"
    async with turn.tool_call("Touch the world", kind="execute") as call:
        if turn.prompt.text == "permission" and not await call.request_permission():
            await call.fail()
        else:
            await call.write("touched")
    async with turn.message() as message:
        await message.write("Done.")
    return None


if __name__ == "__main__":
    agent.run()
