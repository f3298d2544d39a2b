"""An agent of ours that uses the MCP server `theirs` of its client, and says what came of it."""

from __future__ import annotations

import json
from typing import Any

from antiphon import Agent, AgentOptions, AgentTurn
from antiphon.errors import McpError

agent = Agent("uses", version="1", options=AgentOptions(mcp_over_acp=True))


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    told: list[Any] = []

    async def note(method: str, params: dict[str, Any]) -> None:
        told.append([method, params])

    async with turn.session.mcp("theirs") as server:
        added = await server.call("tools/call", {"name": "add"}, on_notification=note)
        try:
            await server.call("fails")
        except McpError as error:
            await turn.say(json.dumps({"told": told, "added": added, "failed": error.mcp_code}))


if __name__ == "__main__":
    agent.run()
