"""MCP over ACP through the hub: an agent uses a server that runs where the client runs (section 17)."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import AcpServer, McpRequest, connect
from antiphon.errors import LocalError, McpError
from antiphon.schema import v2
from tests.hub.operating import IDLE, is_saved, until
from tests.hub.parrots import begin, ended, join, new_session, parrot, prompt, said
from tests.hub.running import DEADLINE, ROOT, served
from tests.hub.test_files import by_hand
from tests.hub.test_processes import hub_of
from tests.peers.test_interop import ts_sdk
from tests.requirements.marks import requirement

USES = [sys.executable, str(ROOT / "tests" / "peers" / "mcp_agent.py")]
ABLE: dict[int, Any] = {
    1: {"mcpCapabilities": {"acp": True}},
    2: {"session": {"mcp": {"stdio": {}, "acp": {}}}},
}
SERVER = {"type": "acp", "name": "ours", "serverId": "srv"}
BETWEEN = {"method": "tools/list", "params": {"_meta": {"x": None}}, "_meta": {"traceparent": "00-5"}}
PAIRS = pytest.mark.parametrize(
    ("agent", "client"), [(1, 1), (1, 2), (2, 1), (2, 2)], ids=lambda version: f"v{version}"
)


@requirement("MCPACP-04", "MCPACP-06")
@pytest.mark.parametrize("client", [1, 2])
@pytest.mark.parametrize("agent", [1, 2])
async def test_an_agent_uses_a_server_of_a_client_behind_the_hub(
    tmp_path: Path, agent: int, client: int
) -> None:
    async def handler(request: McpRequest) -> Any:
        if request.method == "fails":
            raise McpError(-32601, "No")
        await request.notify("notifications/progress", {"progress": 1})
        return {"resultType": "complete", "sum": 5}

    with served(tmp_path, "--acp-version", str(agent), agent=USES) as hub:
        async with asyncio.timeout(DEADLINE), hub.client(version=client) as first, hub.client() as second:
            session = await first.new_session("/", mcp_servers=[AcpServer("theirs", handler)])
            other = await second.load_session(session.id, "/")
            await (await other.prompt("go")).drained()  # whoever prompts: it is the session's
            assert json.loads(other.messages[-1].text) == {
                "told": [["notifications/progress", {"progress": 1}]],
                "added": {"resultType": "complete", "sum": 5},
                "failed": -32601,
            }


@requirement("MCPACP-05", "MCPACP-07")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_official_sdk_s_agent_behind_the_hub(tmp_path: Path, version: int) -> None:
    heard = asyncio.Event()

    async def handler(request: McpRequest) -> Any:
        if request.method == "fails":
            raise McpError(-32601, "No")
        if request.method == "wait":
            await asyncio.Event().wait()
        if request.method == "heard":
            heard.set()
            return {}
        await request.notify("notifications/progress", {"progress": 1})
        await heard.wait()
        return {"resultType": "complete", "sum": 5}

    command = [*ts_sdk("mcp_agent.mjs"), f"v{version}"]
    with served(tmp_path, "--acp-version", str(version), agent=command) as hub:
        async with asyncio.timeout(DEADLINE), hub.client() as client:
            session = await client.new_session("/", mcp_servers=[AcpServer("ours", handler)])
            await (await session.prompt("go")).drained()
            assert json.loads(session.messages[-1].text) == {
                "told": [{"method": "notifications/progress", "params": {"progress": 1}}],
                "added": {"result": {"resultType": "complete", "sum": 5}},
                "failed": {"error": {"code": -32601, "message": "No"}},
                "unknown": -33001,
                "waited": -32800,
            }


@requirement("MCPACP-09")
@PAIRS
async def test_what_they_say_passes_unchanged_and_finds_who_offers_it(
    tmp_path: Path, agent: int, client: int
) -> None:
    with served(tmp_path, "--acp-version", str(agent), agent=parrot(agent, capabilities=ABLE[agent])) as hub:
        async with hub.talk(client) as talk, hub.talk(client) as other:
            session = await new_session(talk, mcpServers=[SERVER])
            elsewhere = await new_session(other)
            asks = {"ask": ["mcp/message", {"serverId": "srv", "requestId": "r1", **BETWEEN}]}
            begin(talk, session, asks)
            request = await talk.request("mcp/message")
            assert request["params"] == {"serverId": "srv", "requestId": "r1", **BETWEEN}
            talk.send(id=request["id"], result={"result": None})
            await ended(talk)
            assert said(talk) == [{"result": None}]
            # The agent of another session was told of no such server.
            await prompt(other, elsewhere, asks)
            assert [answer["code"] for answer in said(other)] == [-33001]
            assert not [frame for frame in other.seen if frame.get("method") == "mcp/message"]


@requirement("MCPACP-05", "MCPACP-09")
async def test_a_client_that_has_gone_offers_nothing_until_it_is_back(
    tmp_path: Path,
) -> None:
    asks = {"ask": ["mcp/message", {"serverId": "srv", "requestId": "r1", **BETWEEN}]}
    with served(tmp_path, agent=parrot(1, capabilities=ABLE[1])) as hub:
        async with hub.talk(1) as stays:
            async with hub.talk(2) as offers:
                session = await new_session(offers, mcpServers=[SERVER])
                await join(stays, session, version=1)
                begin(stays, session, asks, id="1")
                await offers.request("mcp/message")
            await ended(stays, "1")  # it left while it was asked
            await prompt(stays, session, asks, id="2")
            assert [answer["code"] for answer in said(stays)] == [-33002, -33001]
            async with hub.talk(2) as again:
                params = {"sessionId": session, "cwd": "/", "mcpServers": [SERVER]}
                await again.call("r", "session/resume", **params)
                begin(stays, session, asks, id="3")
                request = await again.request("mcp/message")
                again.send(id=request["id"], result={"error": {"code": 7, "message": "inner"}})
                await ended(stays, "3")
                assert said(stays)[-1] == {"error": {"code": 7, "message": "inner"}}


@requirement("MCPACP-01")
async def test_nothing_is_offered_to_an_agent_that_takes_none(tmp_path: Path) -> None:
    async def never(request: McpRequest) -> Any: ...

    with served(tmp_path, agent=parrot(1)) as hub:
        async with hub.client() as client:
            assert client.abilities.mcp == {"stdio"}
            with pytest.raises(LocalError):
                await client.new_session("/", mcp_servers=[AcpServer("ours", never)])
        async with hub.talk(2) as talk:
            talk.send(id=1, method="session/new", params={"cwd": "/", "mcpServers": [SERVER]})
            assert (await talk.answer_to(1))["error"]["code"] == -32602


LISTS = """
import sys
from antiphon import Agent, SQLiteStore

agent = Agent("lists", store=SQLiteStore(sys.argv[1]))

@agent.on_prompt
async def answer(turn):
    await turn.say(f"[{', '.join(server.name for server in turn.session.mcp_servers)}]")

agent.run()
"""


async def test_a_session_that_is_woken_by_who_only_joins_has_the_servers_it_had(tmp_path: Path) -> None:
    agent = [sys.executable, "-c", LISTS, str(tmp_path / "agent.db")]
    server = v2.McpServerStdio(name="tools", command="/bin/true")
    async with hub_of(tmp_path, agent, idle=IDLE) as (hub, client):
        async with connect(hub) as first:
            session = await first.new_session("/", mcp_servers=[server])
            turn = await session.prompt("which?")
            await turn.drained()
            assert turn.text == "[tools]"
        await until(lambda: is_saved(client, session.id))
        async with by_hand(hub) as joins:
            await joins.call("a", "_antiphon/attach", sessionId=session.id, historyPolicy="none")
            joins.prompt(1, session.id, "which?")
            await joins.answer_to(1)
            assert "[tools]" in str(joins.seen)
