"""Elicitations with the official SDKs as the other end: forms with every kind of field, and visits."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from antiphon.client import Elicitation, Permissions, connect
from tests.peers.test_interop import DEADLINE, HERE, python_sdk, ts_sdk

OURS = [sys.executable, str(HERE / "asking_agent.py")]
PEERS = ["ts-sdk-v1", "ts-sdk-v2", "python-sdk-v1"]


def command(peer: str, role: str) -> list[str]:
    if peer == "python-sdk-v1":
        return python_sdk(f"asking_{role}.py")
    return [*ts_sdk(f"asking_{role}.mjs"), peer.rpartition("-")[2]]


@pytest.mark.parametrize("peer", PEERS)
async def test_a_client_of_an_official_sdk_answers_our_agent(peer: str) -> None:
    started = [*command(peer, "client"), "--", *OURS]
    process = await asyncio.create_subprocess_exec(*started, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
    assert process.returncode == 0
    told: dict[str, Any] = json.loads(out)
    assert [one["mode"] for one in told["asked"]] == ["form", "form", "url"]
    form, _, visit = told["asked"]
    assert form["toolCallId"]
    assert list(form["requestedSchema"]["properties"])[:3] == ["fullName", "mail", "due"]
    assert form["requestedSchema"]["required"] == ["fullName", "mail", "due"]
    assert visit["url"] == "https://example.com/pay?order=1"
    assert told["completed"] == visit["elicitationId"]
    said = json.dumps([u for u in told["updates"] if u["sessionUpdate"] == "agent_message_chunk"])
    assert "('fullName', 'Ada')" in said
    assert "('size', 'xl')" in said
    assert "('due', '2030-01-02')" in said
    assert "decline accept" in said


@pytest.mark.parametrize("peer", PEERS)
async def test_an_agent_of_an_official_sdk_is_answered_by_our_client(peer: str) -> None:
    seen: list[Elicitation] = []

    class Answers(Permissions):
        elicits = ("form", "url")

        async def elicit(self, elicitation: Elicitation) -> Any:
            seen.append(elicitation)
            if elicitation.url is not None:
                return elicitation.accept()
            assert set(elicitation.problems({"name": "x"})) == {"name"}
            return elicitation.accept(name="Ada", extras=["a"])

    async with (
        asyncio.timeout(DEADLINE),
        connect(command(peer, "agent"), answers=Answers()) as client,
    ):
        session = await client.new_session("/")
        turn = await session.prompt("go")
        await turn.drained()
        assert json.loads(turn.text) == {
            "able": {"form": {}, "url": {}},
            "form": {
                "action": "accept",
                "content": {"name": "Ada", "size": "s", "extras": ["a"], "count": 2},
            },
            "visit": {"action": "accept"},
        }
        assert [field.name for field in seen[0].fields] == ["name", "size", "extras", "count", "gift"]
        assert seen[0].agent == "asking"
        assert seen[1].host == "example.com"
        assert await seen[1].completed()
