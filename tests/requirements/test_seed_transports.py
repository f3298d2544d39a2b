"""The beginning of a session and its first turn over real processes and sockets, in every dialect.

The agent is the example that speaks first. It is reached over stdio, and behind a hub in a process of its own
over WebSocket, HTTP and `antiphon acp`; the hub speaks v1 or v2 with it.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.remote.http_client import connect_http
from antiphon.transports.processes.child import ChildTransport
from antiphon.transports.websocket import connect_websocket
from tests.agent.talk import INFO
from tests.hub.running import ANTIPHON, ROOT, Served
from tests.hub.running import served as serving
from tests.requirements.seed_places import DIALECTS, WITH_STATES, Wire, offers, served, version_of

FIRST_WORDS = [sys.executable, str(ROOT / "examples" / "first_words_agent.py")]
DEADLINE = 60.0


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One hub for all tests, with a process of the agent in v1 and one in v2."""
    arguments = ["--share"]
    for name, version in (("hub-v1", "1"), ("hub-v2", "2")):
        arguments += ["--agent", f"{name}={shlex.join(FIRST_WORDS)}", "--acp-version", f"{name}={version}"]
    with serving(tmp_path_factory.mktemp("seeds"), *arguments, agent=()) as running:
        yield running


async def reach(hub: Served, over: str) -> Any:
    headers = {"Authorization": f"Bearer {hub.token}"}
    if over == "websocket":
        return await connect_websocket(hub.acp, headers=headers)
    if over == "http":
        return await connect_http(hub.acp.replace("ws://", "http://"), headers=headers)
    return await ChildTransport.spawn([*ANTIPHON, "acp", "--data", str(hub.folder)])


@asynccontextmanager
async def speaking(transport: Any, dialect: str) -> AsyncIterator[Wire]:
    wire = Wire(transport)
    wire.dialect = dialect
    shape: dict[str, Any] = {"clientInfo": INFO, "clientCapabilities": {}}
    if version_of(dialect) == 2:
        shape = {"info": INFO, "capabilities": {}}
    try:
        opening = {"protocolVersion": version_of(dialect), **shape, **offers(dialect)}
        await wire.call("init", "initialize", **opening)
        yield wire
    finally:
        await transport.aclose()


async def greeted(wire: Wire, session: str) -> None:
    """The greeting comes behind the answer that names the session, and the first turn behind it works."""
    if "Good morning" not in str(wire.seen):
        await wire.until(lambda frame: "Good morning" in str(frame))
    greeting = next(at for at, frame in enumerate(wire.seen) if "Good morning" in str(frame))
    assert wire.story().index("= new") < greeting
    wire.prompt(1, session, "hi")
    assert await wire.ended(1) == "end_turn"
    said = [words for role, words in wire.words() if role == "agent"]
    assert said == ["Good morning. What shall we do?", "Let us do that."]
    if wire.dialect in WITH_STATES:
        assert ("user", "hi") in wire.words()
        assert wire.states()[-2:] == ["running", "idle"]


async def begins(hub: Served, over: str, place: str, dialect: str) -> None:
    async with asyncio.timeout(DEADLINE), speaking(await reach(hub, over), dialect) as wire:
        params = {"cwd": "/", "mcpServers": [], "_meta": {"antiphon": {"agent": place}}}
        session = (await wire.call("new", "session/new", **params))["sessionId"]
        await greeted(wire, session)


@pytest.mark.parametrize("over", ["websocket", "http"])
@served(*DIALECTS, places=("hub-v1", "hub-v2"))
async def test_an_agent_in_a_process_speaks_first_through_a_hub(
    hub: Served, place: str, dialect: str, over: str
) -> None:
    await begins(hub, over, place, dialect)


@served("v1", "v1+turn_complete", "v2", places=("hub-v1",))
async def test_an_agent_in_a_process_speaks_first_to_an_editor(hub: Served, place: str, dialect: str) -> None:
    await begins(hub, "stdio", place, dialect)


@served(*DIALECTS, places=("agent",))
async def test_an_agent_in_a_process_speaks_first(place: str, dialect: str) -> None:
    transport = await ChildTransport.spawn(FIRST_WORDS)
    async with asyncio.timeout(DEADLINE), speaking(transport, dialect) as wire:
        await greeted(wire, await wire.new_session())
