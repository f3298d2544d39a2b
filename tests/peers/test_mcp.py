"""MCP over ACP (section 17, unstable) with the official TypeScript SDK as the other end."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from antiphon.client import AcpServer, McpRequest, connect
from antiphon.errors import McpError
from tests.peers.test_interop import DEADLINE, HERE, ts_sdk
from tests.requirements.marks import requirement

OURS = [sys.executable, str(HERE / "mcp_agent.py")]


@requirement("MCPACP-04", "MCPACP-05")
@pytest.mark.parametrize("version", [1, 2])
async def test_their_agent_uses_a_server_of_our_client(version: int) -> None:
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
    async with asyncio.timeout(DEADLINE), connect(command, version=version) as client:
        session = await client.new_session("/", mcp_servers=[AcpServer("ours", handler)])
        await (await session.prompt("go")).drained()
        assert json.loads(session.messages[-1].text) == {
            "told": [{"method": "notifications/progress", "params": {"progress": 1}}],
            "added": {"result": {"resultType": "complete", "sum": 5}},
            "failed": {"error": {"code": -32601, "message": "No"}},
            "unknown": -33001,
            "waited": -32800,
        }


@requirement("MCPACP-03", "MCPACP-08")
@pytest.mark.parametrize("version", [1, 2])
async def test_our_agent_uses_a_server_of_their_client(version: int) -> None:
    command = [*ts_sdk("mcp_client.mjs"), f"v{version}", "--", *OURS]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
    assert process.returncode == 0
    told = json.loads(out)
    first, second = told["asked"]
    assert (first["method"], first["params"]["name"], second["method"]) == ("tools/call", "add", "fails")
    assert first["clientInfo"] == {"name": "uses", "version": "1"}
    assert first["envelopeMeta"] == {"traceparent": "00-a-b-01"}
    said = {
        "told": [["notifications/progress", {"progress": 1}]],
        "added": {"resultType": "complete", "sum": 5},
        "failed": -32601,
    }
    assert json.dumps(json.dumps(said)) in json.dumps(told["updates"])
