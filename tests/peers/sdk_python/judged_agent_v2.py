"""The agent of `judged_agent.py` in v1 and v2, with the experimental v2 of the official Python SDK 1.0.

A v2 prompt is answered with its message id when it is inserted. A prompt that comes during a turn is held
until the turn has ended.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import acp
from acp.experimental.negotiation import AgentProtocolRouter
from acp.experimental.v2 import PROTOCOL_VERSION, AgentSideConnection
from acp.experimental.v2 import schema as v2
from judged_agent import JudgedAgent, counted, halves

OPTIONS = [
    v2.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    v2.PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class Session:
    """`free` is held by the turn that is under way; `cancelled` belongs to it."""

    def __init__(self) -> None:
        self.free = asyncio.Lock()
        self.cancelled = asyncio.Event()
        self.cancels = 0


class JudgedAgentV2:
    def __init__(self, client: AgentSideConnection) -> None:
        self.client = client
        self.sessions: dict[str, Session] = {}
        self.turns: set[asyncio.Task[None]] = set()

    async def initialize(self, protocol_version: int, **_: Any) -> v2.InitializeResponse:
        return v2.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            info=v2.Implementation(name="sdk-python-judged", version="1.0.0"),
            capabilities=v2.AgentCapabilities(session=v2.SessionCapabilities()),
        )

    async def new_session(self, cwd: str, **_: Any) -> v2.NewSessionResponse:
        session_id = f"sess_{uuid4().hex}"
        self.sessions[session_id] = Session()
        return v2.NewSessionResponse(session_id=session_id)

    async def cancel_session(self, session_id: str, **_: Any) -> None:
        if session_id in self.sessions:
            self.sessions[session_id].cancels += 1
            self.sessions[session_id].cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> v2.PromptResponse:
        if session_id not in self.sessions:
            raise acp.RequestError(-32002, "Resource not found", {"sessionId": session_id})
        session = self.sessions[session_id]
        cancels = session.cancels
        await session.free.acquire()
        if session.cancels != cancels:
            session.free.release()
            raise acp.RequestError.request_cancelled()
        session.cancelled = asyncio.Event()
        message_id = f"msg_{uuid4().hex}"
        turn = asyncio.create_task(self.turn(session_id, session, message_id, prompt))
        self.turns.add(turn)
        turn.add_done_callback(self.turns.discard)
        return v2.PromptResponse(message_id=message_id)

    async def turn(self, session_id: str, session: Session, message_id: str, prompt: list[Any]) -> None:
        text = "".join(block.text for block in prompt if block.type == "text")
        cancelled, reply = session.cancelled, f"msg_{uuid4().hex}"
        await self.update(session_id, v2.UserMessageUpdate(message_id=message_id, content=prompt))
        await self.update(session_id, v2.RunningSessionStateUpdate())
        if text == "count":
            async for number in counted(cancelled):
                await self.say(session_id, reply, number)
        elif text in ("tool", "slow tool", "permission"):
            await self.use_tool(session_id, text, cancelled)
        else:
            for half in halves(text):
                await self.say(session_id, reply, half)
        reason = "cancelled" if cancelled.is_set() else "end_turn"
        await self.update(session_id, v2.IdleSessionStateUpdate(stop_reason=reason))
        session.free.release()

    async def use_tool(self, session_id: str, text: str, cancelled: asyncio.Event) -> None:
        call = {"tool_call_id": f"call_{uuid4().hex}", "title": "Touch a file", "kind": "edit"}
        await self.update(session_id, v2.SessionToolCallUpdate(**call, status="pending"))
        allowed = True
        if text == "permission":
            await self.update(session_id, v2.RequiresActionSessionStateUpdate())
            subject = v2.ToolCallPermissionSubjectVariant(tool_call=v2.ToolCallUpdate(**call))
            try:
                answer = await self.client.request_permission(
                    session_id, "Touch a file?", OPTIONS, subject=subject
                )
                allowed = answer.outcome.outcome == "selected" and answer.outcome.option_id == "yes"
            except acp.RequestError:
                allowed = False
            await self.update(session_id, v2.RunningSessionStateUpdate())
        call_id = call["tool_call_id"]
        if allowed:
            await self.update(
                session_id, v2.SessionToolCallUpdate(tool_call_id=call_id, status="in_progress")
            )
        if text == "slow tool":
            await cancelled.wait()
        status = "cancelled" if cancelled.is_set() else "completed" if allowed else "failed"
        await self.update(session_id, v2.SessionToolCallUpdate(tool_call_id=call_id, status=status))

    async def say(self, session_id: str, message_id: str, text: str) -> None:
        content = v2.TextContentBlock(text=text)
        await self.update(session_id, v2.AgentMessageChunk(message_id=message_id, content=content))

    async def update(self, session_id: str, update: Any) -> None:
        await self.client.session_update(session_id, update)


if __name__ == "__main__":
    router = AgentProtocolRouter(v1=lambda _: JudgedAgent(), v2=JudgedAgentV2)
    asyncio.run(router.run())
