"""An agent written directly on a connection, in v1 and in v2: `python examples/wire_agent.py`.

It shows what the wire layer gives by itself. What it does is decided by the prompt's text: `stream N`,
`ping`, `permission`, `wait`, or anything else, which it says back.
"""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

from antiphon.schema import v1, v2
from antiphon.wire import Agreement, Connection, Inbound, Offer, Role, StdioTransport, Transport, run

FORTY = "forty characters of text, to the letter."
INFO: dict[str, Any] = {"name": "wire-agent", "version": "0.1.0"}


class WireAgent:
    """One connection's worth of agent."""

    def __init__(self, transport: Transport, **options: Any) -> None:
        self.connection = Connection(
            transport,
            role=Role.AGENT,
            on_initialize=self.initialize,
            requests={"session/new": self.new_session, "session/prompt": self.prompt},
            notifications={"session/cancel": self.cancel},
            **options,
        )
        self._cancelled: dict[str, asyncio.Event] = {}
        self._sessions = 0
        self._messages = 0

    @property
    def types(self) -> ModuleType:
        assert self.connection.agreement is not None
        return v1 if self.connection.agreement.version == 1 else v2

    async def initialize(self, offer: Offer, params: Any) -> tuple[Agreement, Any]:
        if offer.version == 1:
            return offer.agree(), v1.InitializeResponse(
                protocol_version=v1.ProtocolVersion(1), agent_info=v1.Implementation(**INFO)
            )
        return offer.agree(), v2.InitializeResponse(
            protocol_version=v2.ProtocolVersion(2),
            info=v2.Implementation(**INFO),
            capabilities=v2.AgentCapabilities(session=v2.SessionCapabilities()),
        )

    async def new_session(self, params: Any, inbound: Inbound) -> Any:
        self._sessions += 1
        return self.types.NewSessionResponse(session_id=f"session-{self._sessions}")

    async def prompt(self, params: Any, inbound: Inbound) -> Any:
        # Up to the first `await` this runs in the session's lane: a cancel sent behind it finds the turn.
        session = params.session_id
        cancelled = self._cancelled[session] = asyncio.Event()
        text = "".join(getattr(block, "text", "") for block in params.prompt)
        turn = self.turn(session, text, cancelled)
        if self.types is v1:
            return v1.PromptResponse(stop_reason=v1.StopReason(await turn))
        message = v2.MessageId(self.next_message())
        self.connection.start_soon(self.turn_v2(session, message, params.prompt, turn))
        return v2.PromptResponse(message_id=message)

    async def turn_v2(self, session: Any, message: v2.MessageId, prompt: Any, turn: Any) -> None:
        await self.update(session, v2.UserMessage(message_id=message, content=prompt))
        await self.update(session, v2.SessionStateUpdate(state=v2.State.RUNNING))
        stop_reason = v2.StopReason(await turn)
        await self.update(session, v2.SessionStateUpdate(state=v2.State.IDLE, stop_reason=stop_reason))

    async def turn(self, session: Any, text: str, cancelled: asyncio.Event) -> str:
        message = self.next_message()
        match text.split():
            case ["ping"]:
                pass
            case ["stream", count]:
                await self.stream(session, message, int(count))
            case ["permission"]:
                await self.ask(session, message)
            case ["wait"]:
                await self.say(session, message, "waiting")
                await cancelled.wait()
                await self.say(session, message, " no longer")
                return "cancelled"
            case _:
                await self.say(session, message, "You said: ")
                await self.say(session, message, text)
        return "end_turn"

    async def ask(self, session: Any, message: str) -> None:
        types = self.types
        call: dict[str, Any] = {"tool_call_id": types.ToolCallId("call-1"), "title": "Touch the world"}
        options = [
            types.PermissionOption(
                option_id=types.PermissionOptionId(id), name=name, kind=types.PermissionOptionKind(kind)
            )
            for id, name, kind in (("yes", "Allow", "allow_once"), ("no", "Reject", "reject_once"))
        ]
        if types is v1:
            await self.update(session, v1.ToolCall(**call))
            request: Any = v1.RequestPermissionRequest(
                session_id=v1.SessionId(session), tool_call=v1.ToolCallUpdate(**call), options=options
            )
        else:
            await self.update(session, v2.SessionToolCallUpdate(**call))
            request = v2.RequestPermissionRequest(
                session_id=v2.SessionId(session),
                title="Touch the world?",
                options=options,
                subject=v2.ToolCallPermissionSubject(tool_call=v2.ToolCallUpdate(**call)),
            )
        outcome = (await self.connection.call("session/request_permission", request)).outcome
        allowed = getattr(outcome, "option_id", None) == "yes"
        status = types.ToolCallStatus("completed" if allowed else "failed")
        await self.update(
            session, types.SessionToolCallUpdate(tool_call_id=call["tool_call_id"], status=status)
        )
        await self.say(session, message, "allowed" if allowed else "not allowed")

    async def stream(self, session: Any, message: str, count: int) -> None:
        types, notify = self.types, self.connection.notify
        notification = v1.SessionNotification if types is v1 else v2.UpdateSessionNotification
        for _ in range(count):
            chunk = types.AgentMessageChunk(message_id=message, content=types.TextContent(text=FORTY))
            await notify("session/update", notification(session_id=session, update=chunk))

    async def say(self, session: Any, message: str, text: str) -> None:
        types = self.types
        chunk = types.AgentMessageChunk(message_id=message, content=types.TextContent(text=text))
        await self.update(session, chunk)

    async def update(self, session: Any, update: Any) -> None:
        kind = v1.SessionNotification if self.types is v1 else v2.UpdateSessionNotification
        await self.connection.notify("session/update", kind(session_id=session, update=update))

    def cancel(self, params: Any) -> None:
        if params.session_id in self._cancelled:
            self._cancelled[params.session_id].set()

    def next_message(self) -> str:
        self._messages += 1
        return f"message-{self._messages}"


async def main() -> None:
    agent = WireAgent(await StdioTransport.open())
    async with agent.connection:
        await agent.connection.wait_closed()


if __name__ == "__main__":
    run(main())
