"""The sessions of the good agent: replays, lists, MCP servers, modes and options."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import Json
from tests.conformance.good_agent_client import (
    BOTH,
    DEADLINE,
    connect,
    kinds,
    update_of,
)


async def test_v1_load_replays_before_it_answers_and_resume_does_not() -> None:
    async with connect(1) as client:
        session = await client.new_session()
        live = await client.turn(session, "Read the file README.md")
        start = len(client.frames)
        await client.call("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        replayed = [update_of(frame) for frame in client.frames[start:]]
        assert kinds(replayed[:5]) == [
            "user_message_chunk", "agent_thought_chunk", "tool_call", *["agent_message_chunk"] * 2,
        ]  # fmt: skip
        assert replayed[1]["messageId"] == live[0]["messageId"]
        assert "result" in client.frames[start + 5]
        start = len(client.frames)
        await client.call("session/resume", sessionId=session, cwd="/tmp")
        assert len(client.frames) == start + 1


async def test_v2_resume_replays_if_asked_and_always_ends_with_the_state() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        live = await client.turn(session, "Hello")
        start = len(client.frames)
        await client.call("session/resume", sessionId=session, cwd="/tmp")
        assert kinds([update_of(frame) for frame in client.frames[start:-1]]) == ["idle"]
        start = len(client.frames)
        await client.call("session/resume", sessionId=session, cwd="/tmp", replayFrom={"type": "start"})
        replayed = [update_of(frame) for frame in client.frames[start:-1]]
        assert replayed[0] == live[0]
        assert replayed[1]["content"] == replayed[4]["content"] == []
        assert [u for u in replayed if "chunk" in u["sessionUpdate"]] == live[2:7]
        assert kinds(replayed)[-1] == "idle"


@BOTH
async def test_a_running_session_is_replayed_so_far_and_goes_on(version: int) -> None:
    async with connect(version) as client:
        session = await client.new_session()
        client.prompt(session, "Count slowly")
        await client.update("agent_message_chunk", count=3)
        start = len(client.frames)
        if version == 1:
            await client.call("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        else:
            await client.call("session/resume", sessionId=session, cwd="/tmp", replayFrom={"type": "start"})
            assert update_of(client.frames[-2])["state"] == "running"
        replayed = [update_of(frame) for frame in client.frames[start:]]
        texts = [u["content"]["text"] for u in replayed if u.get("sessionUpdate") == "agent_message_chunk"]
        assert texts[:3] == ["1\n", "2\n", "3\n"]
        await client.update("agent_message_chunk", content={"type": "text", "text": f"{len(texts) + 1}\n"})


@BOTH
async def test_a_close_during_work_ends_the_turn_before_its_answer(version: int) -> None:
    async with connect(version) as client:
        session = await client.new_session()
        prompt = client.prompt(session, "Ask for permission")
        await client.question()
        assert await client.call("session/close", sessionId=session) == {}
        closed = len(client.frames)
        if version == 1:
            assert client.frames[-2] == {
                "jsonrpc": "2.0",
                "id": prompt,
                "result": {"stopReason": "cancelled"},
            }
        else:
            assert update_of(client.frames[-2])["stopReason"] == "cancelled"
        assert (await client.call("session/prompt", sessionId=session, prompt=[]))["data"] == {
            "sessionId": session
        }
        assert len(client.frames) == closed + 1


@BOTH
async def test_sessions_are_listed_in_pages_until_they_are_deleted(version: int) -> None:
    class Small(GoodAgent):
        page_size = 2

    async with connect(version, Small) as client:
        made = [await client.new_session(cwd) for cwd in ("/a", "/b", "/a", "/a", "/a/sub")]
        first = await client.call("session/list", cwd="/a")
        second = await client.call("session/list", cwd="/a", cursor=first["nextCursor"])
        assert [row["sessionId"] for row in first["sessions"]] == [made[3], made[2]]
        assert [row["sessionId"] for row in second["sessions"]] == [made[0]]
        assert "nextCursor" not in second
        assert (await client.call("session/list", cursor="nonsense"))["code"] == -32602
        for _ in range(2):
            assert await client.call("session/delete", sessionId=made[1]) == {}
        assert await client.call("session/list", cwd="/b") == {"sessions": []}


SERVER = """
import socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.sendall(sys.stdin.readline().encode())
print("{}", flush=True)
link.sendall(sys.stdin.readline().encode())
sys.stdin.read()
"""
"""An MCP server that shows what it gets, and exits with its client."""


@BOTH
async def test_an_mcp_server_is_greeted_and_ends_with_its_session(version: int) -> None:
    links: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await links.put((reader, writer))

    async with await asyncio.start_server(accept, "127.0.0.1") as listener, connect(version) as client:
        port = str(listener.sockets[0].getsockname()[1])
        server = {"name": "shown", "command": sys.executable, "args": ["-c", SERVER, port], "env": []}
        if version == 2:
            server["type"] = "stdio"
        made = await client.call("session/new", cwd="/", mcpServers=[server])
        async with asyncio.timeout(DEADLINE):
            link, writer = await links.get()
            assert json.loads(await link.readline())["method"] == "initialize"
            assert json.loads(await link.readline())["method"] == "notifications/initialized"
            await client.call("session/close", sessionId=made["sessionId"])
            assert await link.read() == b""
            writer.close()
            await writer.wait_closed()


async def test_a_v2_agent_refuses_transports_it_lacks_and_names_used_twice() -> None:
    stdio = {"type": "stdio", "name": "one", "command": "/bin/true"}
    async with connect(2) as client:
        for servers in ([{"type": "http", "name": "h", "url": "http://h"}], [{"name": "x"}], [stdio, stdio]):
            assert (await client.call("session/new", cwd="/", mcpServers=servers))["code"] == -32602


async def test_a_mode_and_its_option_stay_equal() -> None:
    async with connect(1) as client:
        session = await client.new_session()
        assert await client.call("session/set_mode", sessionId=session, modeId="code") == {}
        options = (await client.update("config_option_update"))["configOptions"]
        assert options[0]["currentValue"] == "code"
        await client.call("session/set_config_option", sessionId=session, configId="mode", value="ask")
        await client.update("current_mode_update", currentModeId="ask")


async def test_a_v2_option_takes_offered_values_only() -> None:
    async with connect(2) as client:
        session = await client.new_session()

        async def set_option(**params: Any) -> Any:
            return await client.call("session/set_config_option", sessionId=session, **params)

        answer = await set_option(configId="verbose", type="boolean", value=True)
        assert [option["currentValue"] for option in answer["configOptions"]] == ["ask", "small", True]
        for wrong in (
            {"configId": "model", "type": "id", "value": "huge"},
            {"configId": "model", "type": "boolean", "value": True},
            {"configId": "model", "value": "large"},
            {"configId": "other", "type": "id", "value": "large"},
        ):
            assert (await set_option(**wrong))["code"] == -32602


async def test_boolean_options_are_for_v1_clients_that_advertise_them() -> None:
    async with connect(1) as client:
        assert len((await client.call("session/new", cwd="/", mcpServers=[]))["configOptions"]) == 2
    advertised: Json = {"session": {"configOptions": {"boolean": {}}}}
    async with connect(1, capabilities=advertised) as client:
        assert len((await client.call("session/new", cwd="/", mcpServers=[]))["configOptions"]) == 3
