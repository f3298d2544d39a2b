"""An ACP v1 agent over stdio, written with the official Python SDK.

Run it with the Python that holds the SDK: `<python> agent.py`. What it does is in the prompt's text:
`stream N`, `ping`, `permission`, `wait`; anything else is echoed in two chunks (see ../README.md).
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import acp
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    Implementation,
    LoadSessionResponse,
    PermissionOption,
    ToolCallUpdate,
)

CHUNK = "forty characters of text, neither more ."
OPTIONS = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class PeerAgent:
    """Only the methods it has: the SDK answers the others with "method not found"."""

    def __init__(self) -> None:
        self.client: acp.Client
        self.cancelled: dict[str, asyncio.Event] = {}

    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session=True),
            agent_info=Implementation(name="sdk-python-agent", version="1.0.0"),
        )

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        session_id = f"sess_{uuid4().hex}"
        self.cancelled[session_id] = asyncio.Event()
        return acp.NewSessionResponse(session_id=session_id)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        self.cancelled.setdefault(session_id, asyncio.Event())
        await self.client.session_update(session_id, acp.update_user_message_text("an earlier question"))
        await self.client.session_update(session_id, acp.update_agent_message_text("an earlier answer"))
        return LoadSessionResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self.cancelled:
            self.cancelled[session_id].set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:
        if session_id not in self.cancelled:
            raise acp.RequestError(-32002, "Resource not found", {"sessionId": session_id})
        self.cancelled[session_id].clear()
        text = "".join(block.text for block in prompt if block.type == "text")
        word, _, rest = text.partition(" ")
        if word == "stream" and rest.isdecimal():
            for _ in range(int(rest)):
                await self.say(session_id, CHUNK)
        elif text == "permission":
            return await self.ask(session_id)
        elif text == "wait":
            await self.say(session_id, "waiting")
            await self.cancelled[session_id].wait()
            await self.say(session_id, "late")
            return acp.PromptResponse(stop_reason="cancelled")
        elif text != "ping":
            half = (len(text) + 1) // 2
            await self.say(session_id, text[:half])
            await self.say(session_id, text[half:])
        return acp.PromptResponse(stop_reason="end_turn")

    async def ask(self, session_id: str) -> acp.PromptResponse:
        call_id = f"call_{uuid4().hex}"
        call = acp.start_tool_call(call_id, "Touch a file", kind="edit", status="pending")
        await self.client.session_update(session_id, call)
        subject = ToolCallUpdate(tool_call_id=call_id, title="Touch a file", kind="edit", status="pending")
        answer = await self.client.request_permission(session_id, subject, OPTIONS)
        chosen = answer.outcome.option_id if isinstance(answer.outcome, AllowedOutcome) else "cancelled"
        status = "completed" if chosen == "yes" else "failed"
        await self.client.session_update(session_id, acp.update_tool_call(call_id, status=status))
        await self.say(session_id, f"permission: {chosen}")
        return acp.PromptResponse(stop_reason="cancelled" if chosen == "cancelled" else "end_turn")

    async def say(self, session_id: str, text: str) -> None:
        await self.client.session_update(session_id, acp.update_agent_message_text(text))


if __name__ == "__main__":
    asyncio.run(acp.run_agent(PeerAgent()))  # lines of up to 50 MB, the SDK's own default here
