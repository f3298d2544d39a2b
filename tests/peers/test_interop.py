"""The official SDKs as the opposite end, both ways, over stdio, in real processes.

Each conversation is: initialize, new session, a prompt with updates, a permission request, a cancel.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples.wire_client import WireClient

from antiphon.transports.processes.child import ChildTransport
from tests.peers import install

HERE = Path(__file__).parent
OUR_AGENT = [sys.executable, str(HERE.parents[1] / "examples" / "wire_agent.py")]
DEADLINE = 60.0


def available(what: Callable[[], Any]) -> str:
    try:
        return str(what())
    except install.PeerUnavailable as reason:
        pytest.skip(f"this peer cannot be had: {reason}")


def python_sdk(script: str) -> list[str]:
    return [available(install.python_sdk), str(HERE / "sdk_python" / script)]


def ts_sdk(script: str) -> list[str]:
    os.environ["ACP_TS_SDK"] = available(install.ts_sdk)
    return [available(install.node), str(HERE / "sdk_ts" / script)]


AGENTS: dict[str, tuple[int, Callable[[], list[str]]]] = {
    "python-sdk-v1": (1, lambda: python_sdk("agent.py")),
    "ts-sdk-v1": (1, lambda: ts_sdk("agent_v1.mjs")),
    "ts-sdk-v2": (2, lambda: ts_sdk("agent_v2.mjs")),
    "antiphon-v1": (1, lambda: OUR_AGENT),
    "antiphon-v2": (2, lambda: OUR_AGENT),
}
CLIENTS: dict[str, tuple[int, Callable[[], list[str]]]] = {
    "python-sdk-v1": (1, lambda: python_sdk("client.py")),
    "ts-sdk-v1": (1, lambda: ts_sdk("client_v1.mjs")),
    "ts-sdk-v2": (2, lambda: ts_sdk("client_v2.mjs")),
}


def kinds(client: WireClient) -> list[str]:
    return [str(type(update).__struct_config__.tag) for update in client.updates]


@pytest.mark.parametrize("name", AGENTS)
async def test_our_client_drives_their_agent(name: str) -> None:
    version, command = AGENTS[name]
    asked_for = 2 if name != "antiphon-v1" else 1
    transport = await ChildTransport.spawn(command())
    async with asyncio.timeout(DEADLINE), WireClient.start(transport, version=asked_for) as client:
        assert client.version == version

        assert await client.prompt("hello there") == "end_turn"
        assert client.text.endswith("hello there")
        assert kinds(client).count("agent_message_chunk") == 2

        assert await client.prompt("permission") == "end_turn"
        [permission] = client.permissions
        assert [option.option_id for option in permission.options] == ["yes", "no"]
        assert "tool_call_update" in kinds(client)
        [completed] = [update for update in client.updates if getattr(update, "status", None) == "completed"]
        assert completed.tool_call_id

        assert await client.prompt("wait", cancel_after_first_chunk=True) == "cancelled"
        assert kinds(client).count("agent_message_chunk") == 2, "the late chunk came before the end"

        assert await client.prompt("stream 2000") == "end_turn"
        assert kinds(client).count("agent_message_chunk") == 2000, "all were handled when the turn ended"
    assert transport.end_reason == "closed by this side"


@pytest.mark.parametrize("name", CLIENTS)
def test_their_client_drives_our_agent(name: str) -> None:
    version, command = CLIENTS[name]
    result = subprocess.run(
        [*command(), "--", *OUR_AGENT], capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    steps = [json.loads(line) for line in result.stdout.splitlines()]
    by_step = {(step["step"], step.get("text")): step for step in steps}

    assert by_step["initialize", None]["protocolVersion"] == version
    hello = by_step["prompt", "hello there"]
    assert hello["stopReason"] == "end_turn"
    chunks = [update["text"] for update in hello["updates"] if update["kind"] == "agent_message_chunk"]
    assert chunks == ["You said: ", "hello there"]
    assert by_step["permission", None]["selected"] == "yes"
    permission = by_step["prompt", "permission"]
    assert [update["status"] for update in permission["updates"] if update.get("status")] == ["completed"]
    waiting = by_step["prompt", "wait"]
    assert waiting["stopReason"] == "cancelled"
    assert waiting["updates"][-1 if version == 1 else -2]["text"] == " no longer"
    if version == 2:
        states = [update["state"] for update in hello["updates"] if update["kind"] == "state_update"]
        assert states == ["running", "idle"]
        assert hello["updates"][0]["kind"] == "user_message"
        assert hello["updates"][0]["messageId"] == hello["messageId"]
    assert by_step["exit", None]["code"] == 0
