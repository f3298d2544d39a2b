"""A raw agent to stand behind a hub in this process: plain JSON, in v1, v2 or v2 as first proposed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from antiphon.transports.base import Inbox
from tests.requirements.agent_by_hand import ALL_V1, ALL_V2, opening, text

AGENTS = ("v1", "v1+turn_complete", "v2", "proposed")
"""The dialects of a raw agent."""


class RawTurn:
    """One prompt that a raw agent got."""

    def __init__(self, agent: RawAgent, request: dict[str, Any]) -> None:
        self.agent = agent
        self.request = request
        self.cancelled = asyncio.Event()
        self.session: str = request["params"]["sessionId"]

    def update(self, kind: str, /, **fields: Any) -> None:
        params = {"sessionId": self.session, "update": {"sessionUpdate": kind, **fields}}
        self.agent.send(method="session/update", params=params)

    def says(self, words: str, **fields: Any) -> None:
        self.update("agent_message_chunk", content=text(words), **fields)

    def state(self, state: str, **fields: Any) -> None:
        kind = "state_change" if self.agent.dialect == "proposed" else "state_update"
        self.update(kind, state=state, **fields)

    def accept(self) -> None:
        """Take the prompt, in the order of the seed: the answer, the message, `running`."""
        if self.agent.dialect.startswith("v1"):
            return
        id = f"user-{self.request['id']}"
        answer = {} if self.agent.dialect == "proposed" else {"messageId": id}
        self.agent.send(id=self.request["id"], result=answer)
        self.update("user_message", messageId=id, content=self.request["params"]["prompt"])
        self.state("running")

    def end(self, reason: str = "end_turn", **fields: Any) -> None:
        if self.agent.dialect == "v1+turn_complete":
            named = {"promptRequestId": str(self.request["id"]), "stopReason": reason}
            self.update("turn_complete", **named)
        if self.agent.dialect.startswith("v1"):
            self.agent.send(id=self.request["id"], result={"stopReason": reason, **fields})
        else:
            key = "stop_reason" if self.agent.dialect == "proposed" else "stopReason"
            self.state("idle", **{key: reason}, **fields)


class RawAgent:
    """`script` plays one turn; what it is sent stands in `seen`."""

    def __init__(self, dialect: str, script: Callable[[RawTurn], Awaitable[None]]) -> None:
        self.dialect = dialect
        self.version = 1 if dialect.startswith("v1") else 2
        self.seen: list[dict[str, Any]] = []
        self._script = script
        self._turns: list[RawTurn] = []
        self._transport: Any = None

    def send(self, **frame: Any) -> None:
        self._transport.send(json.dumps({"jsonrpc": "2.0", **frame}).encode())

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[RawAgent]:
        yield self

    async def serve(self, transport: Any) -> None:
        self._transport = transport
        inbox = Inbox(transport)
        async with asyncio.TaskGroup() as group:
            while batch := await inbox.take():
                for frame in map(json.loads, batch):
                    self.seen.append(frame)
                    self._receive(frame, group)
            for turn in self._turns:
                turn.cancelled.set()
        await transport.aclose()

    def _receive(self, frame: dict[str, Any], group: asyncio.TaskGroup) -> None:
        match frame.get("method"):
            case "initialize":
                able: dict[str, Any] = ALL_V1 if self.version == 1 else ALL_V2
                if self.dialect == "v1+turn_complete":
                    able = {**able, "_meta": {"antiphon": {"turnComplete": True}}}
                self.send(id=frame["id"], result=opening(self.version, able))
            case "session/prompt":
                turn = RawTurn(self, frame)
                self._turns.append(turn)
                group.create_task(self._play(turn))
            case "session/cancel":
                for turn in self._turns:
                    turn.cancelled.set()
            case str() if "id" in frame:
                self.send(id=frame["id"], result={"sessionId": "raw"})

    async def _play(self, turn: RawTurn) -> None:
        turn.accept()
        await self._script(turn)


def place_of(dialect: str) -> str:
    """The hub's place that speaks this agent's version."""
    return "hub-v1" if dialect.startswith("v1") else "hub-v2"
