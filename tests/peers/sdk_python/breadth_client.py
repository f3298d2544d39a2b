"""A v1 client of the official Python SDK that logs in and tries what an agent offers, prompt by prompt.

    <python> breadth_client.py -- AGENT…

It prints one JSON object: what it was given, and the updates and the answer of each prompt. The SDK checks
every shape. Permissions are granted, forms are filled in, visits are agreed to.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import acp
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    Annotations,
    AudioContentBlock,
    ClientCapabilities,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationUrlCapabilities,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    Implementation,
    RequestPermissionResponse,
    ResourceContentBlock,
    TextResourceContents,
)

CONTENT = [
    acp.text_block("this: "),
    ImageContentBlock(
        type="image",
        data="R0lG",
        mime_type="image/gif",
        annotations=Annotations(audience=["assistant"], priority=0.5),
    ),
    AudioContentBlock(type="audio", data="AAAA", mime_type="audio/wav"),
    ResourceContentBlock(
        type="resource_link", uri="file:///song.py", name="song.py", title="A song", size=12
    ),
    EmbeddedResourceContentBlock(
        type="resource",
        resource=TextResourceContents(uri="file:///all.txt", text="all of it", mime_type="text/plain"),
    ),
]
WORDS = [
    "/draw", "/say", "/plan", "/edit", "/run", "/ask", "/visit", "/status", "/compact", "/delegate",
    "/private",
]  # fmt: skip


class Trying:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.updates: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(plain(update))

    async def request_permission(self, options: Any, session_id: str, tool_call: Any, **_: Any) -> Any:
        self.asked.append("permission")
        outcome = AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        shown = plain(mode)
        self.asked.append("url" if "url" in shown else "form")
        if "url" in shown:
            return AcceptElicitationResponse(action="accept")
        user = "user" in shown["requestedSchema"]["properties"]
        return AcceptElicitationResponse(action="accept", content={"user": "Ann"} if user else {"to": "Ulm"})

    async def complete_elicitation(self, elicitation_id: str, **_: Any) -> None: ...


def plain(value: Any) -> Any:
    return value.model_dump(by_alias=True, exclude_none=True, mode="json")


async def main(command: list[str]) -> None:
    client = Trying()
    able = ElicitationCapabilities(form=ElicitationFormCapabilities(), url=ElicitationUrlCapabilities())
    async with acp.spawn_agent_process(client, *command, use_unstable_protocol=True) as (connection, _):  # type: ignore[arg-type]
        given = await connection.initialize(
            protocol_version=1,
            client_capabilities=ClientCapabilities(elicitation=able),
            client_info=Implementation(name="breadth", version="1.0.0"),
        )
        await connection.authenticate(method_id="name")
        session = await connection.new_session(cwd="/", mcp_servers=[])
        turns = {}
        for prompt in (CONTENT, *([acp.text_block(word)] for word in WORDS)):
            client.updates = []
            answer = await connection.prompt(session_id=session.session_id, prompt=prompt)
            turns[prompt[0].text] = {"answer": plain(answer), "updates": client.updates}
        print(json.dumps({"given": plain(given), "asked": client.asked, "turns": turns}), flush=True)


asyncio.run(main(sys.argv[2:]))
