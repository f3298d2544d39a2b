"""Large prompts through the hub: taken up to the bound, refused by name above it, and the link lives."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import Client, ClientSession
from antiphon.errors import CallFailed
from antiphon.remote.http_client import connect_http
from antiphon.transports.processes.child import ChildTransport
from antiphon.transports.websocket import connect_websocket
from tests.agent.talk import INFO, Talk
from tests.hub.measuring_agent import measure
from tests.hub.running import ANTIPHON, Served, served

LARGE = 20_000_000
DEADLINE = 90.0
BOUND = 1_000_000
LIMIT = {"reason": "limit", "limit": "frame", "most": BOUND}


def measuring(version: int) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name("measuring_agent.py")), str(version)]


def text_of(size: int) -> str:
    return ("0123456789abcde\n" * (size // 16 + 1))[:size]


@asynccontextmanager
async def talking(hub: Served, link: str, version: int = 2) -> AsyncIterator[Talk]:
    """A client by hand over some link."""
    headers = {"Authorization": f"Bearer {hub.token}"}
    transport: Any
    if link == "websocket":
        transport = await connect_websocket(hub.acp, headers=headers)
    elif link == "stdio":
        transport = await ChildTransport.spawn([*ANTIPHON, "acp", "--data", str(hub.folder)])
    else:
        address = hub.acp.replace("ws://", "http://")
        transport = await connect_http(address, headers=headers)
    talk = Talk(transport)
    shape = (
        {"clientInfo": INFO, "clientCapabilities": {}} if version == 1 else {"info": INFO, "capabilities": {}}
    )
    try:
        await talk.call("init", "initialize", protocolVersion=version, **shape)
        yield talk
    finally:
        await transport.aclose()


async def began(talk: Talk) -> str:
    return str((await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"])


@pytest.mark.parametrize(
    ("link", "version"),
    [("websocket", 1), ("websocket", 2), ("http", 1), ("stdio", 1), ("stdio", 2)],
)
async def test_twenty_megabytes_reach_the_agent_whole(tmp_path: Path, link: str, version: int) -> None:
    text = text_of(LARGE)
    with served(tmp_path, agent=measuring(version)) as hub:
        async with asyncio.timeout(DEADLINE), talking(hub, link, version) as talk:
            session = await began(talk)
            talk.prompt("p", session, text)
            assert (await talk.update("agent_message_chunk"))["content"]["text"] == measure(text)
            assert "result" in await talk.answer_to("p")


@pytest.mark.parametrize(("link", "id"), [("websocket", 7), ("websocket", "7"), ("http", 7), ("stdio", 7)])
async def test_over_the_bound_the_request_is_refused_and_the_link_lives(
    tmp_path: Path, link: str, id: Any
) -> None:
    with served(tmp_path, "--max-frame", str(BOUND), agent=measuring(2)) as hub:
        async with asyncio.timeout(DEADLINE), talking(hub, link) as talk:
            session = await began(talk)
            for number in range(2):
                talk.prompt(id if number == 0 else f"{id}{number}", session, text_of(3_000_000))
                refused = await talk.answer_to(id if number == 0 else f"{id}{number}")
                assert refused["error"]["code"] == -32004, refused
                assert refused["error"]["data"] == LIMIT
                assert str(BOUND) in refused["error"]["message"]
            small = text_of(900_000)
            talk.prompt("small", session, small)
            assert (await talk.update("agent_message_chunk"))["content"]["text"] == measure(small)


@pytest.mark.parametrize("version", [1, 2])
async def test_our_client_is_told_the_bound_and_goes_on(tmp_path: Path, version: int) -> None:
    with served(tmp_path, "--max-frame", str(BOUND), agent=measuring(2)) as hub:
        async with asyncio.timeout(DEADLINE), hub.client(version=version) as client:
            session = await client.new_session("/")
            if version == 1:
                end = await (await session.prompt(text_of(2_000_000))).drained()
                assert end.error is not None
                assert end.error.data == LIMIT
            else:
                with pytest.raises(CallFailed, match=f"over the bound of {BOUND}"):
                    await session.prompt(text_of(2_000_000))
            turn = await session.prompt("small")
            await turn.drained()
            assert turn.text == measure("small")


@asynccontextmanager
async def bounded(version: int, bound: int) -> AsyncIterator[ClientSession]:
    """Our client at a measuring agent, which takes no more than `bound` of it at a time."""
    transport = await ChildTransport.spawn(measuring(version), bound=bound)
    client = Client(transport)
    async with asyncio.timeout(DEADLINE), client.connection:
        await client._initialize()
        yield await client.new_session("/")


@pytest.mark.parametrize("version", [1, 2])
async def test_an_answer_of_the_agent_over_the_bound_fails_its_prompt(version: int) -> None:
    async with bounded(version, BOUND) as session:
        if version == 1:
            end = await (await session.prompt("answer 3000000")).drained()
            assert end.error is not None
            assert end.error.data == LIMIT
        else:
            with pytest.raises(CallFailed, match=f"over the bound of {BOUND}"):
                await session.prompt("answer 3000000")
        turn = await session.prompt("small")
        await turn.drained()
        assert measure("small") in turn.text


@pytest.mark.parametrize("version", [1, 2])
async def test_an_update_of_the_agent_over_the_bound_does_not_end_the_link(version: int) -> None:
    async with bounded(version, BOUND) as session:
        assert (await (await session.prompt("say 3000000")).drained()).stop_reason == "end_turn"
        turn = await session.prompt("small")
        await turn.drained()
        assert turn.text == measure("small")


async def test_a_message_without_an_id_is_answered_under_null(tmp_path: Path) -> None:
    with served(tmp_path, "--max-frame", str(BOUND), agent=measuring(2)) as hub:
        async with asyncio.timeout(DEADLINE), talking(hub, "websocket") as talk:
            session = await began(talk)
            note = {"sessionId": session, "text": text_of(2_000_000)}
            talk.transport.send(json.dumps({"jsonrpc": "2.0", "method": "_note", "params": note}).encode())
            refused = await talk.until(lambda frame: "error" in frame)
            assert (refused["id"], refused["error"]["data"]) == (None, LIMIT)
