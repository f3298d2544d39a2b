"""An agent that is always in the middle of something: a call that runs for ever, one that waits, and a
question about it. `say TEXT` is answered at once; `left` ends a turn and says nothing more of its call."""

from __future__ import annotations

import asyncio

from antiphon.agent import Agent, AgentTurn
from antiphon.schema import v2

agent = Agent("asking", version="1")


@agent.on_prompt
async def work(turn: AgentTurn) -> None:
    text = turn.prompt.text
    if text.startswith("say"):
        await turn.say(text)
    elif text == "left":
        call = v2.ToolCallId("left")
        await turn.session.update(v2.SessionToolCallUpdate(tool_call_id=call, title="Left behind"))
    else:
        async with (
            turn.tool_call("Build the site", kind="execute"),
            turn.tool_call("Publish the site", kind="execute", pending=True) as publishing,
        ):
            await publishing.request_permission()
            await asyncio.Event().wait()


agent.run()
