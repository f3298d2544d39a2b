"""One peer floods the hub with what is of no use: others are served meanwhile, and the log stays short."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon.hub import Hub
from antiphon.transports.websocket import connect_websocket
from tests.agent.talk import INFO, Talk

COUNT = 20_000
DEADLINE = 60.0
LARGE = [sys.executable, str(Path(__file__).with_name("large_agent.py"))]
SERVED = 8
"""Requests of another client that a hub answers at least while it reads a flood. In one turn of its loop
it reads 512 frames at most, and a request takes about four turns. Without that bound it answers 3 to 6."""
LINES = 50
"""Lines that a flood may add to the log."""


@asynccontextmanager
async def talking(hub: Hub) -> AsyncIterator[Talk]:
    headers = {"Authorization": f"Bearer {hub.token}"}
    transport = await connect_websocket(f"ws://127.0.0.1:{hub.port}/acp", headers=headers)
    talk = Talk(transport)
    try:
        await talk.call("init", "initialize", protocolVersion=2, info=INFO, capabilities={})
        yield talk
    finally:
        await transport.aclose()


async def served(talk: Talk, flood: Awaitable[None]) -> int:
    """How many requests are answered during a flood."""
    flooding = asyncio.ensure_future(flood)
    count = 0
    async with asyncio.timeout(DEADLINE):
        while not flooding.done():
            await talk.call(f"during {count}", "session/list")
            count += 1
    await flooding
    return count


@pytest.mark.parametrize("word", ["strangers", "unknown", "answers", "noise"])
async def test_an_agent_that_floods_the_hub_delays_others_little(
    word: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    hub = Hub({"large": LARGE})
    async with hub.listening(), talking(hub) as flooded, talking(hub) as other:
        session = (await flooded.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]

        async def flood() -> None:
            flooded.prompt("p", session, f"{word} {COUNT}")
            async with asyncio.timeout(DEADLINE):
                await flooded.update("state_update", state="idle")

        assert await served(other, flood()) >= SERVED
    assert len(caplog.records) < LINES
    if word != "unknown":
        assert any("so far" in record.getMessage() for record in caplog.records), "they are counted"


@pytest.mark.parametrize(
    "frame",
    [
        {"method": "weather", "params": {}},
        {"method": "session/update", "params": {"sessionId": "stranger", "update": {}}},
        {"id": "nobody", "result": {}},
        {"id": "nobody"},
        None,
    ],
    ids=["unknown", "update", "answer", "malformed", "noise"],
)
async def test_a_client_that_floods_the_hub_delays_others_little(
    frame: dict[str, object] | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    hub = Hub({"large": LARGE})
    line = b"no JSON at all" if frame is None else json.dumps({"jsonrpc": "2.0", **frame}).encode()
    async with hub.listening(), talking(hub) as other:
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        key = base64.b64encode(os.urandom(16)).decode()
        head = ["GET /acp HTTP/1.1", f"Host: 127.0.0.1:{hub.port}", f"Authorization: Bearer {hub.token}"]
        head += ["Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}"]
        writer.write("\r\n".join([*head, "Sec-WebSocket-Version: 13", "", ""]).encode())
        await reader.readuntil(b"\r\n\r\n")
        opening = {"protocolVersion": 2, "info": INFO, "capabilities": {}}
        asked = {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": opening}
        writer.write(masked(json.dumps(asked).encode()))
        await reader.readuntil(b'"init"')

        async def flood() -> None:
            for _ in range(COUNT // 100):
                writer.write(masked(line) * 100)
                await writer.drain()
            last = {"jsonrpc": "2.0", "id": "last", "method": "session/list", "params": {}}
            writer.write(masked(json.dumps(last).encode()))
            while b'"last"' not in await reader.readuntil(b"}"):
                pass

        assert await served(other, flood()) >= SERVED
        writer.close()
    assert len(caplog.records) < LINES


def masked(data: bytes) -> bytes:
    """A text frame of a client, masked with zeros."""
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2)
    return b"\x81" + size + bytes(4) + data
