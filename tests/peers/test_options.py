"""Config options, modes, commands, usage, notices and compactions with the official SDKs as the other end."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from antiphon.client import connect
from tests.peers.test_interop import DEADLINE, HERE, python_sdk, ts_sdk

OURS = [sys.executable, str(HERE / "options_agent.py")]


async def drive(command: list[str]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(*command, "--", *OURS, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
    assert process.returncode == 0, command
    told: dict[str, Any] = json.loads(out)
    return told


def values(options: list[dict[str, Any]]) -> dict[str, Any]:
    return {option.get("configId", option.get("id")): option["currentValue"] for option in options}


@pytest.mark.parametrize("peer", ["ts-sdk-v1", "ts-sdk-v2", "python-sdk-v1"])
async def test_a_client_of_an_official_sdk_sets_options_and_runs_a_command(peer: str) -> None:
    if peer == "python-sdk-v1":
        command = python_sdk("configure_client.py")
    else:
        command = [*ts_sdk("configure_client.mjs"), peer.rpartition("-")[2]]
    told = await drive(command)
    given, kinds = told["given"], [update["sessionUpdate"] for update in told["updates"]]
    asked = peer != "python-sdk-v1"  # that client does not ask for booleans, notices and compactions
    assert values(given["configOptions"]) == {"model": "fast", "mode": "ask"} | (
        {"loud": False} if asked else {}
    )
    assert values(told["set"]["configOptions"])["model"] == "deep"
    if peer.endswith("v1"):
        assert given["modes"]["currentModeId"] == "ask"
        modes = [u["currentModeId"] for u in told["updates"] if u["sessionUpdate"] == "current_mode_update"]
        assert modes == ["code", "ask"]
    else:
        assert [command["name"] for command in given["availableCommands"]] == ["tell"]
    if asked:
        assert values(told["loud"]["configOptions"])["loud"] is True
    assert "usage_update" in kinds
    assert ("notice" in kinds) is asked
    assert kinds.count("compaction_update") == (2 if asked else 0)
    [said] = [
        u for u in told["updates"] if "it all" in json.dumps(u) and "agent_message" in u["sessionUpdate"]
    ]
    assert "'model': 'deep', 'mode': 'ask'" in json.dumps(said)


async def test_an_agent_of_the_official_sdk_with_modes_is_configured_by_our_client() -> None:
    async with asyncio.timeout(DEADLINE), connect(ts_sdk("modes_agent.mjs")) as client:
        session = await client.new_session("/")
        assert list(session.config) == ["model", "mode"]
        able = json.loads(getattr(session.config["model"], "description", "null"))
        assert able == {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}}, "INIT-18"
        await session.set_config("model", "deep")
        await session.set_config("mode", "code")
        current = {id: getattr(option, "current_value", None) for id, option in session.config.items()}
        assert current == {"model": "deep", "mode": "code"}
        turn = await session.prompt("go")
        await turn.drained()
        assert getattr(session.config["mode"], "current_value", None) == "ask"
        assert session.usage is not None
        turn = await session.command("review", "it")
        await turn.drained()
        assert turn.text == "/review it"
