"""Clients that ask for much and do not read: the hub holds next to nothing for them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
from websockets.asyncio.client import connect as dial

from tests.agent.talk import INFO, Talk
from tests.http.raw import Raw
from tests.hub.running import Served, served
from tests.hub.test_vanishing import call

MIB = 2**20
CLIENTS = 40
BOUND = 100 * MIB
DEADLINE = 120.0
LARGE = [sys.executable, str(Path(__file__).with_name("large_agent.py"))]
JOINS: dict[str, tuple[int, str, dict[str, Any]]] = {
    "load": (1, "session/load", {}),
    "resume": (2, "session/resume", {"replayFrom": {"type": "start"}}),
    "after": (2, "session/resume", {"replayFrom": {"type": "_antiphon_after", "seq": 1}}),
    "attach": (2, "_antiphon/attach", {"historyPolicy": "full"}),
    "attach after": (1, "_antiphon/attach", {"historyPolicy": "after", "after": 1}),
}


async def at_rest(process: psutil.Process) -> int:
    """The memory of a hub that works no more."""
    async with asyncio.timeout(DEADLINE):
        before = -1.0
        while (now := sum(process.cpu_times()[:2])) != before:
            before = now
            await asyncio.sleep(0.25)
    return int(process.memory_info().rss)


async def prompted(talk: Talk, session: str, text: str) -> None:
    talk.prompt(text, session, text)
    async with asyncio.timeout(DEADLINE):
        await talk.update("state_update", state="idle")
    talk.forget()


@asynccontextmanager
async def unread_websocket(hub: Served, session: str, how: str) -> AsyncIterator[None]:
    version, method, params = JOINS[how]
    bearer = {"Authorization": f"Bearer {hub.token}"}
    link = await dial(hub.acp, additional_headers=bearer, proxy=None)
    shape = {"clientCapabilities": {}} if version == 1 else {"info": INFO, "capabilities": {}}
    await call(link, "initialize", protocolVersion=version, **shape)
    link.transport.pause_reading()
    asked = {"sessionId": session, "cwd": "/", "mcpServers": [], **params}
    await link.send(json.dumps({"jsonrpc": "2.0", "id": "join", "method": method, "params": asked}))
    yield
    link.transport.abort()
    await link.wait_closed()


@asynccontextmanager
async def unread_stream(hub: Served, session: str, how: str) -> AsyncIterator[None]:
    version, method, params = JOINS[how]
    raw = Raw(int(hub.port), hub.token)
    await raw.initialize(version)
    async with raw.socket() as (_, writer):
        reading: Any = writer.transport  # it is one for both directions
        reading.pause_reading()
        writer.write(raw.request("GET", headers={"Acp-Session-Id": session}))
        asked = {"sessionId": session, "cwd": "/", "mcpServers": [], **params}
        assert (await raw.post({"id": "join", "method": method, "params": asked}, session)).status == 202
        yield
    await raw.ask("DELETE")


LINKS = {"websocket": unread_websocket, "http": unread_stream}


KINDS = [(link, how) for link in LINKS for how in JOINS]


TEXTS = ("text 8 1000000", "call 8 1000000", "output 8 1000000", "raw 8000000")


async def begun(talk: Talk) -> str:
    return str(
        (await talk.call(object.__hash__(object()), "session/new", cwd="/", mcpServers=[]))["sessionId"]
    )


async def test_clients_that_replay_much_and_do_not_read_cost_little(tmp_path: Path) -> None:
    """Forty clients of all kinds, and eight megabytes for each: a copy for each would be 320 MB."""
    with served(tmp_path, agent=LARGE) as hub:
        process = psutil.Process(hub.process.pid)
        async with hub.talk() as talk, AsyncExitStack() as stack:
            sessions = [await begun(talk) for _ in TEXTS]
            for session, text in zip(sessions, TEXTS, strict=True):
                await prompted(talk, session, text)
            before = await at_rest(process)
            for link, how in KINDS:
                for session in sessions:
                    await stack.enter_async_context(LINKS[link](hub, session, how))
            grown = await at_rest(process) - before
            assert grown < BOUND


async def test_a_large_update_costs_little_for_clients_that_do_not_read(tmp_path: Path) -> None:
    """Twenty clients that follow a session, and one chunk of fifteen megabytes: a copy for each would be
    300 MB."""
    with served(tmp_path, agent=LARGE) as hub:
        process = psutil.Process(hub.process.pid)
        async with hub.talk() as talk, AsyncExitStack() as stack:
            session = await begun(talk)
            for how in ("load", "resume") * 5:
                await stack.enter_async_context(unread_websocket(hub, session, how))
                await stack.enter_async_context(unread_stream(hub, session, how))
            before = await at_rest(process)
            await prompted(talk, session, "text 1 15000000")
            grown = await at_rest(process) - before
            assert grown < BOUND
