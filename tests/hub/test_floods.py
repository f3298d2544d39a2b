"""One peer floods the hub with what is of no use: others are served meanwhile, and the log stays short."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import logging
import os
import sys
import time
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
LONG = 0.007
"""CPU seconds of one turn of the event loop. A peer's input is handled for 5 ms of a turn at most."""
FEW = 1
"""Turns that may be longer. Where all that one read brought is handled in one turn, a flood has several of
8 to 200 ms."""
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


async def long_turns(flood: Awaitable[None]) -> list[float]:
    """The turns of the event loop during a flood that keep others waiting, in CPU seconds: so long is how
    busy the hub is, and not the machine."""
    flooding = asyncio.ensure_future(flood)
    gc.disable()  # what it takes is not the flood's
    found, before = [], time.thread_time()
    try:
        async with asyncio.timeout(DEADLINE):
            while not flooding.done():
                await asyncio.sleep(0)
                now = time.thread_time()
                if now - before > LONG:
                    found.append(now - before)
                before = now
    finally:
        gc.enable()
    await flooding
    return found


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

        long = await long_turns(flood())
        assert len(long) <= FEW, long
        await other.call("after", "session/list")
    assert len(caplog.records) < LINES
    if word != "unknown":
        assert any("so far" in record.getMessage() for record in caplog.records), "they are counted"


async def test_a_state_names_some_of_the_questions_that_it_waits_for() -> None:
    """Where it named all of them each time one is asked, its size would grow with their square."""
    hub = Hub({"large": LARGE})
    async with hub.listening(), talking(hub) as talk, asyncio.timeout(DEADLINE):
        session = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        talk.prompt("p", session, "questions 300")
        await talk.update("state_update", state="idle")
        states = [update for update in talk.updates() if update.get("state") == "requires_action"]
        assert max(len(state.get("_meta", {})["antiphon"]["waitingFor"]) for state in states[1:]) == 100


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

        long = await long_turns(flood())
        assert len(long) <= FEW, long
        await other.call("after", "session/list")
        writer.close()
    assert len(caplog.records) < LINES


def masked(data: bytes) -> bytes:
    """A text frame of a client, masked with zeros."""
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2)
    return b"\x81" + size + bytes(4) + data
