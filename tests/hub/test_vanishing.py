"""A WebSocket client that vanishes: nothing of it is kept, and its session goes on."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection as WebSocketClient
from websockets.asyncio.client import connect as dial

from antiphon.agent import Agent, AgentTurn
from antiphon.client import Client, connect
from antiphon.connection import Connection
from antiphon.hub import Hub
from antiphon.live.attachment import Attachment
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.remote.websocket_server import websocket_server
from antiphon.server.connection import ClientConnection
from antiphon.transports.websocket import WebSocketTransport
from tests.hub.operating import until
from tests.requirements.marks import requirement

DEADLINE = 60.0
KINDS = (ClientConnection, AttachmentWriter, Connection, Attachment, WebSocketTransport)


def echo() -> Agent:
    agent = Agent("echo")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say(turn.prompt.text)
        if turn.prompt.text == "wait":
            await asyncio.Event().wait()

    return agent


@asynccontextmanager
async def reachable(kind: str) -> AsyncIterator[tuple[str, str | None]]:
    """An agent or a hub, its address and its token."""
    if kind == "hub":
        hub = Hub({"echo": echo()})
        async with hub.listening():
            yield f"ws://127.0.0.1:{hub.port}/acp", hub.token
    else:
        agent = echo()
        async with agent.serving(), websocket_server(agent.serve) as server:
            yield f"ws://127.0.0.1:{server.port}/acp", None


async def call(link: WebSocketClient, method: str, **params: Any) -> Any:
    await link.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
    while True:
        frame = json.loads(await link.recv())
        if frame.get("id") == method and "method" not in frame:
            return frame["result"]


async def attached_clients(client: Client) -> int:
    """How many clients the list says are attached to the one session."""
    [listed] = [info async for info in client.list_sessions()]
    assert listed.meta is not None
    return int(listed.meta["antiphon"]["clients"])


def alive() -> dict[str, int]:
    gc.collect()
    objects = gc.get_objects()
    return {kind.__name__: sum(isinstance(each, kind) for each in objects) for kind in KINDS}


@requirement("WS-04")
@pytest.mark.parametrize("kind", ["agent", "hub"])
@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_that_vanishes_leaves_nothing_behind(kind: str, version: int) -> None:
    shape: dict[str, Any] = {"clientCapabilities": {}}
    if version == 2:
        shape = {"info": {"name": "v", "version": "1"}, "capabilities": {}}
    async with asyncio.timeout(DEADLINE), reachable(kind) as (address, token):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with connect(address, token=token) as stays:
            session = await stays.new_session("/")
            turn = await session.prompt("wait")  # a turn is on when they go
            before = alive()

            async def left() -> bool:
                return await attached_clients(stays) == 1

            async def nothing_is_kept() -> bool:
                return alive() == before

            for _ in range(5):
                link = await dial(address, additional_headers=headers, proxy=None)
                await call(link, "initialize", protocolVersion=version, **shape)
                how = "session/load" if version == 1 else "session/resume"
                await call(link, how, sessionId=session.id, cwd="/", mcpServers=[])
                assert await attached_clients(stays) == 2
                link.transport.abort()  # no close, no word
                await link.wait_closed()
                await until(left)
            del link
            await until(nothing_is_kept)
            await session.cancel()
            assert (await turn.drained()).cancelled
            assert [message.text for message in session.messages] == ["wait", "wait"]
