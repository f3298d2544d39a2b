"""The client of `judged_client.py` in v2, with the experimental v2 of the official Python SDK 1.0.

The turn has ended when its prompt is answered and the session, after it was busy, is idle.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from acp.experimental.v2 import PROTOCOL_VERSION, connect_to_agent
from acp.experimental.v2 import schema as v2
from acp.transports import spawn_stdio_transport
from judged_client import SPAWN


class JudgedClientV2:
    def __init__(self) -> None:
        self.prompted = False
        self.busy = False
        self.ended = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        kind = update.session_update
        if kind == "agent_message_chunk":
            show([update.content])
        elif kind == "agent_message":
            show(update.content or [])
        elif kind == "state_update" and self.prompted:
            if update.state == "idle" and self.busy:
                self.ended.set()
            self.busy = self.busy or update.state in ("running", "requires_action")

    async def request_permission(
        self, session_id: str, title: str, options: list[Any], **_: Any
    ) -> v2.RequestPermissionResponse:
        for option in options:
            if option.kind.startswith("allow"):
                outcome = {"outcome": "selected", "optionId": option.option_id}
                break
        else:
            outcome = {"outcome": "cancelled"}
        return v2.RequestPermissionResponse.model_validate({"outcome": outcome})


def show(blocks: list[Any]) -> None:
    for block in blocks:
        if block.type == "text":
            print(block.text, end="", flush=True)


async def main() -> None:
    client = JudgedClientV2()
    async with (
        spawn_stdio_transport(*sys.argv[1:], **SPAWN) as (reader, writer, process),
        connect_to_agent(client, writer, reader) as agent,
    ):
        info = v2.Implementation(name="sdk-python-judged", version="1.0.0")
        await agent.initialize(protocol_version=PROTOCOL_VERSION, info=info)
        session = await agent.new_session(cwd=os.getcwd())
        client.prompted = True
        await agent.prompt(session_id=session.session_id, prompt=[v2.TextContentBlock(text="hello")])
        ended, died = (asyncio.ensure_future(each) for each in (client.ended.wait(), process.wait()))
        await asyncio.wait((ended, died), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            raise SystemExit("the agent ended before its turn")


if __name__ == "__main__":
    asyncio.run(main())
