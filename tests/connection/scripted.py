"""A peer written by hand inside a test: it sends and expects plain JSON over a real transport."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from antiphon.connection import Connection, Role
from antiphon.schema.version import Agreement, Offer
from antiphon.transports.base import Inbox, Transport
from antiphon.transports.memory import memory_pair

DEADLINE = 60.0
BOTH_SHAPES = {
    "protocolVersion": 2,
    "info": {"name": "test", "version": "1"},
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
    "clientCapabilities": {},
}
V1_ANSWER = {"protocolVersion": 1, "agentCapabilities": {}}
V2_ANSWER = {"protocolVersion": 2, "info": {"name": "agent", "version": "1"}, "capabilities": {"session": {}}}


class Scripted:
    """The other side, by hand."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.inbox = Inbox(transport)
        self._frames: deque[dict[str, Any]] = deque()

    def send(self, **frame: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **frame}).encode())

    def raw(self, frame: bytes) -> None:
        self.transport.send(frame)

    def update(self, session: str, text: str, **more: Any) -> None:
        chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more}
        self.send(method="session/update", params={"sessionId": session, "update": chunk})

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE):
            while not self._frames:
                batch = await self.inbox.take()
                assert batch, "the link ended"
                self._frames += [json.loads(frame) for frame in batch if isinstance(frame, bytes)]
        return self._frames.popleft()

    async def expect(self, method: str) -> dict[str, Any]:
        frame = await self.receive()
        assert frame.get("method") == method, frame
        return frame

    async def request(self, id: Any, method: str, params: Any = None) -> dict[str, Any]:
        self.send(id=id, method=method, params=params or {})
        frame = await self.receive()
        assert frame["id"] == id, frame
        return frame


@asynccontextmanager
async def client(
    answer: dict[str, Any] = V1_ANSWER, **options: Any
) -> AsyncIterator[tuple[Connection, Scripted]]:
    """An initialized client connection, and the agent at its other end by hand."""
    ours, theirs = memory_pair()
    agent = Scripted(theirs)
    async with Connection(ours, role=Role.CLIENT, **options) as connection:
        opening = asyncio.ensure_future(connection.initialize(BOTH_SHAPES))
        request = await agent.expect("initialize")
        agent.send(id=request["id"], result=answer)
        await opening
        yield connection, agent
    await theirs.aclose()


async def accept_any(offer: Offer, params: Any) -> tuple[Agreement, Any]:
    answer = dict(V1_ANSWER if offer.version == 1 else V2_ANSWER)
    return offer.agree(), answer


@asynccontextmanager
async def agent(version: int | None = 1, **options: Any) -> AsyncIterator[tuple[Connection, Scripted]]:
    """An agent connection, initialized in `version` unless None, and its client by hand."""
    ours, theirs = memory_pair()
    peer = Scripted(theirs)
    async with Connection(ours, role=Role.AGENT, on_initialize=accept_any, **options) as connection:
        if version is not None:
            params = {"protocolVersion": version, "info": {"name": "c", "version": "1"}, "capabilities": {}}
            await peer.request("init", "initialize", params)
        yield connection, peer
    await theirs.aclose()
