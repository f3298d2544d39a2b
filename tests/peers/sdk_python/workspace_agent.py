"""A v1 agent of the official Python SDK that uses the files and terminals of its client.

It says, as JSON, what it was offered and what came of each step.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import acp
from acp.schema import TerminalToolCallContent


class Working:
    def __init__(self) -> None:
        self.client: Any
        self.able: Any
        self.cwd = ""

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: Any = None, **_: Any
    ) -> acp.InitializeResponse:
        self.able = client_capabilities
        return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        self.cwd = cwd
        return acp.NewSessionResponse(session_id="s")

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:
        client, told = self.client, {"able": self.able.model_dump(include={"fs", "terminal"}, mode="json")}
        await client.write_text_file(session_id=session_id, path=f"{self.cwd}/f", content="1\n2\n3\n")
        read = await client.read_text_file(session_id=session_id, path=f"{self.cwd}/f", line=2, limit=1)
        told["read"] = read.content
        for name, path in (("missing", f"{self.cwd}/none"), ("outside", "/etc/passwd")):
            try:
                await client.read_text_file(session_id=session_id, path=path)
            except acp.RequestError as error:
                told[name] = error.code
        made = await client.create_terminal(session_id=session_id, command="cat", args=["f"], cwd=self.cwd)
        id = made.terminal_id
        shown = [TerminalToolCallContent(type="terminal", terminal_id=id)]
        call = acp.start_tool_call("c", "Look", kind="execute", status="in_progress", content=shown)
        await client.session_update(session_id, call)
        exit = await client.wait_for_terminal_exit(session_id=session_id, terminal_id=id)
        told["exit"] = exit.exit_code
        told["output"] = (await client.terminal_output(session_id=session_id, terminal_id=id)).output
        await client.release_terminal(session_id=session_id, terminal_id=id)
        await client.session_update(session_id, acp.update_tool_call("c", status="completed"))
        await client.session_update(session_id, acp.update_agent_message_text(json.dumps(told)))
        return acp.PromptResponse(stop_reason="end_turn")


asyncio.run(acp.run_agent(Working()))  # type: ignore[arg-type]
