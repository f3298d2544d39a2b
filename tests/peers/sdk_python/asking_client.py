"""A v1 client of the official Python SDK that fills in a form, declines one and agrees to a visit.

    <python> asking_client.py -- AGENT…

It prints one JSON object: what it was asked, what was completed and what it was told. The SDK checks shapes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import acp
from acp.schema import (
    AcceptElicitationResponse,
    ClientCapabilities,
    DeclineElicitationResponse,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationUrlCapabilities,
    Implementation,
)

CONTENT = {
    "fullName": "Ada",
    "mail": "ada@example.com",
    "due": "2030-01-02",
    "count": 3,
    "share": 0.25,
    "gift": True,
    "colour": "blue",
    "size": "xl",
    "extras": ["b"],
    "sizes": ["s", "xl"],
}


class Asked:
    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.updates: list[Any] = []
        self.completed = asyncio.get_running_loop().create_future()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(plain(update))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        shown = plain(mode)
        self.asked.append({"mode": "url" if "url" in shown else "form", "message": message, **shown})
        if "url" in shown:
            return AcceptElicitationResponse(action="accept")
        if len(self.asked) == 1:
            return AcceptElicitationResponse(action="accept", content=CONTENT)
        return DeclineElicitationResponse(action="decline")

    async def complete_elicitation(self, elicitation_id: str, **_: Any) -> None:
        self.completed.set_result(elicitation_id)


def plain(value: Any) -> Any:
    return value.model_dump(by_alias=True, exclude_none=True, mode="json")


async def main(command: list[str]) -> None:
    client = Asked()
    able = ElicitationCapabilities(form=ElicitationFormCapabilities(), url=ElicitationUrlCapabilities())
    async with acp.spawn_agent_process(client, *command, use_unstable_protocol=True) as (connection, _):  # type: ignore[arg-type]
        await connection.initialize(
            protocol_version=1,
            client_capabilities=ClientCapabilities(elicitation=able),
            client_info=Implementation(name="asking", version="1.0.0"),
        )
        given = await connection.new_session(cwd="/", mcp_servers=[])
        await connection.prompt(session_id=given.session_id, prompt=[acp.text_block("go")])
        completed = await client.completed
        print(
            json.dumps({"asked": client.asked, "completed": completed, "updates": client.updates}), flush=True
        )


asyncio.run(main(sys.argv[2:]))
