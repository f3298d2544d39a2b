"""A v1 agent written with the official Python SDK, for the judge: what it gets wrong, the SDK gets wrong.

It offers only what it does. The prompt says what that is: `count` (until it is cancelled), `tool`,
`slow tool`, `permission`, `fail`; anything else is repeated in two chunks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count
from typing import Any
from uuid import uuid4

import acp
from acp.schema import (
    AgentCapabilities,
    AgentMessageChunk,
    AllowedOutcome,
    Implementation,
    PermissionOption,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)

A_MOMENT = 0.01
"""Seconds between two numbers."""
OPTIONS = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


async def counted(cancelled: asyncio.Event) -> AsyncIterator[str]:
    """Yield numbers until the turn is cancelled."""
    for number in count(1):
        if cancelled.is_set():
            return
        yield f"{number} "
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(cancelled.wait(), A_MOMENT)


def halves(text: str) -> tuple[str, str]:
    half = (len(text) + 1) // 2
    return text[:half], text[half:]


class JudgedAgent:
    """Only the methods it has: the SDK answers the others."""

    def __init__(self) -> None:
        self.client: acp.Client
        self.cancelled: dict[str, asyncio.Event] = {}

    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="sdk-python-judged", version="1.0.0"),
        )

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        session_id = f"sess_{uuid4().hex}"
        self.cancelled[session_id] = asyncio.Event()
        return acp.NewSessionResponse(session_id=session_id)

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self.cancelled:
            self.cancelled[session_id].set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:
        if session_id not in self.cancelled:
            raise acp.RequestError(-32002, "Resource not found", {"sessionId": session_id})
        cancelled = self.cancelled[session_id] = asyncio.Event()
        text = "".join(block.text for block in prompt if block.type == "text")
        if text == "fail":
            raise RuntimeError("the agent failed")
        if text == "count":
            async for number in counted(cancelled):
                await self.say(session_id, number)
        elif text in ("tool", "slow tool", "permission"):
            await self.use_tool(session_id, text, cancelled)
        else:
            for half in halves(text):
                await self.say(session_id, half)
        return acp.PromptResponse(stop_reason="cancelled" if cancelled.is_set() else "end_turn")

    async def use_tool(self, session_id: str, text: str, cancelled: asyncio.Event) -> None:
        call_id = f"call_{uuid4().hex}"
        call = {"tool_call_id": call_id, "title": "Touch a file", "kind": "edit", "status": "pending"}
        await self.client.session_update(session_id, ToolCallStart(session_update="tool_call", **call))
        allowed = True
        if text == "permission":
            answer = await self.client.request_permission(
                session_id=session_id, tool_call=ToolCallUpdate(**call), options=OPTIONS
            )
            allowed = isinstance(answer.outcome, AllowedOutcome) and answer.outcome.option_id == "yes"
        if allowed:
            await self.progress(session_id, call_id, "in_progress")
        if text == "slow tool":
            await cancelled.wait()
        completed = allowed and not cancelled.is_set()
        await self.progress(session_id, call_id, "completed" if completed else "failed")

    async def progress(self, session_id: str, call_id: str, status: Any) -> None:
        update = ToolCallProgress(session_update="tool_call_update", tool_call_id=call_id, status=status)
        await self.client.session_update(session_id, update)

    async def say(self, session_id: str, text: str) -> None:
        content = TextContentBlock(type="text", text=text)
        update = AgentMessageChunk(session_update="agent_message_chunk", content=content)
        await self.client.session_update(session_id, update)


if __name__ == "__main__":
    asyncio.run(acp.run_agent(JudgedAgent()))
