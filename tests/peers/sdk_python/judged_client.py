"""A client written with the official Python SDK, for the judge: what it gets wrong, the SDK gets wrong.

    <python> judged_client.py AGENT…

It makes a session, sends one prompt, prints the agent's text as it comes, allows what it is asked, and ends
with 0 when the turn has ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import acp
from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    Implementation,
    RequestPermissionResponse,
    TextContentBlock,
)

SPAWN = {"limit": DEFAULT_STDIO_BUFFER_LIMIT_BYTES, "stderr": None, "shutdown_timeout": 5.0}


class JudgedClient:
    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk" and update.content.type == "text":
            print(update.content.text, end="", flush=True)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        allowed = [option.option_id for option in options if option.kind.startswith("allow")]
        if not allowed:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=allowed[0]))


async def main() -> None:
    async with acp.spawn_agent_process(JudgedClient(), *sys.argv[1:], transport_kwargs=SPAWN) as (agent, _):
        info = Implementation(name="sdk-python-judged", version="1.0.0")
        answer = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_info=info)
        if answer.protocol_version != acp.PROTOCOL_VERSION:
            raise SystemExit(f"the agent speaks version {answer.protocol_version}")
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        prompt = [TextContentBlock(type="text", text="hello")]
        await agent.prompt(session_id=session.session_id, prompt=prompt)


if __name__ == "__main__":
    asyncio.run(main())
