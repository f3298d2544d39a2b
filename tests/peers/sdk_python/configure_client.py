"""A v1 client of the official Python SDK that sets an option and a mode and runs a command.

    <python> configure_client.py -- AGENT…

It prints one JSON object: what it was given, and what came of each step. The SDK checks every shape.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import acp
from acp.schema import Implementation


class Recording:
    def __init__(self) -> None:
        self.updates: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(plain(update))


def plain(value: Any) -> Any:
    return value.model_dump(by_alias=True, exclude_none=True, mode="json")


async def main(command: list[str]) -> None:
    client = Recording()
    async with acp.spawn_agent_process(client, *command) as (connection, _):  # type: ignore[arg-type]
        await connection.initialize(
            protocol_version=1, client_info=Implementation(name="configure", version="1.0.0")
        )
        given = await connection.new_session(cwd="/", mcp_servers=[])
        id = given.session_id
        chosen = await connection.set_config_option(session_id=id, config_id="model", value="deep")
        await connection.set_session_mode(session_id=id, mode_id="code")
        await connection.prompt(session_id=id, prompt=[acp.text_block("/tell it all")])
        told = {"given": plain(given), "set": plain(chosen), "updates": client.updates}
        print(json.dumps(told), flush=True)


asyncio.run(main(sys.argv[2:]))
