"""A v1 client of the official Python SDK that offers files and terminals, all of them made up.

    <python> workspace_client.py -- AGENT…

It prints one JSON object: what the agent asked for, and the updates. The SDK checks every shape.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import acp
from acp.schema import (
    ClientCapabilities,
    CreateTerminalResponse,
    FileSystemCapabilities,
    ReadTextFileResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)

ABLE = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True)


class Offering:
    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.updates: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update.model_dump(by_alias=True, exclude_none=True, mode="json"))

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        self.asked.append(["write", path, content])

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> ReadTextFileResponse:
        self.asked.append(["read", path, line, limit])
        if path == "/missing":
            raise acp.RequestError(-32002, "Resource not found")
        return ReadTextFileResponse(content="two\n")

    async def create_terminal(
        self, session_id: str, command: str, args: list[str] | None = None, **_: Any
    ) -> CreateTerminalResponse:
        self.asked.append(["create", command, args])
        return CreateTerminalResponse(terminal_id="T")

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> TerminalOutputResponse:
        self.asked.append(["output", terminal_id])
        return TerminalOutputResponse(
            output="made up\n", truncated=False, exit_status=TerminalExitStatus(exit_code=0)
        )

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> WaitForTerminalExitResponse:
        self.asked.append(["wait", terminal_id])
        return WaitForTerminalExitResponse(exit_code=0)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.asked.append(["kill", terminal_id])

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.asked.append(["release", terminal_id])


async def main(command: list[str]) -> None:
    client = Offering()
    async with acp.spawn_agent_process(client, *command) as (connection, _):  # type: ignore[arg-type]
        await connection.initialize(protocol_version=1, client_capabilities=ABLE)
        given = await connection.new_session(cwd="/", mcp_servers=[])
        await connection.prompt(session_id=given.session_id, prompt=[acp.text_block("go")])
        print(json.dumps({"asked": client.asked, "updates": client.updates}), flush=True)


asyncio.run(main(sys.argv[2:]))
