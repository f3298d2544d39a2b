"""Files, terminals, and the cancel of one call or terminal, with the official SDKs as the other end."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import Workspace, connect
from tests.peers.test_interop import DEADLINE, HERE, python_sdk, ts_sdk

OURS = [sys.executable, str(HERE / "workspace_agent.py")]


async def drive(command: list[str]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(*command, "--", *OURS, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
    assert process.returncode == 0, command
    told: dict[str, Any] = json.loads(out)
    return told


@pytest.mark.parametrize("peer", ["python-sdk-v1", "ts-sdk-v1"])
async def test_an_agent_of_an_official_sdk_uses_our_files_and_terminals(peer: str, tmp_path: Path) -> None:
    command = python_sdk("workspace_agent.py") if "python" in peer else ts_sdk("workspace_agent.mjs")
    async with asyncio.timeout(DEADLINE), connect(command, workspace=Workspace()) as client:
        session = await client.new_session(tmp_path)
        turn = await session.prompt("go")
        await turn.drained()
        told = json.loads(turn.text)
        able = told.pop("able")
        fs = able["fs"]
        assert (fs.get("readTextFile", fs.get("read_text_file")), able["terminal"]) == (True, True)
        assert told == {
            "read": "2\n", "missing": -32002, "outside": -32602, "exit": 0, "output": "1\n2\n3\n",
        }  # fmt: skip
        [call], [terminal] = session.tool_calls, session.terminals
        assert [getattr(item, "terminal_id", None) for item in call.content] == [terminal.id]
        assert (terminal.command, terminal.text, terminal.exited) == ("cat f", "1\n2\n3\n", True)


@pytest.mark.parametrize("peer", ["python-sdk-v1", "ts-sdk-v1"])
async def test_our_agent_uses_files_and_terminals_of_a_client_of_an_official_sdk(peer: str) -> None:
    command = python_sdk("workspace_client.py") if "python" in peer else ts_sdk("workspace_client.mjs")
    told = await drive(command)
    assert told["asked"] == [
        ["write", "/f", "one\ntwo\n"],
        ["read", "/f", 2, 1],
        ["read", "/missing", None, None],
        ["create", "cat", ["f"]],
        ["kill", "T"],
        ["wait", "T"],
        ["output", "T"],
        ["output", "T"],
        ["release", "T"],
    ]
    shown = [update["content"] for update in told["updates"] if isinstance(update.get("content"), list)]
    assert [item for content in shown for item in content][-1] == {"type": "terminal", "terminalId": "T"}
    assert "two\\n-32002 0 made up\\n" in json.dumps(told["updates"])


async def test_a_client_of_the_official_sdk_cancels_a_call_and_a_terminal_of_ours() -> None:
    told = await drive(ts_sdk("cancel_client.mjs"))
    assert told["answers"] == [{}, {}]
    assert told["late"] == -32602
    ends = [update["status"] for update in told["updates"] if "toolCallId" in update and "status" in update]
    assert ends == ["in_progress", "cancelled", "in_progress", "completed"]
    exits = [update["exitStatus"] for update in told["updates"] if update.get("exitStatus")]
    assert [status["signal"] for status in exits] == ["SIGKILL", "SIGTERM"]
    assert {"cols": 80, "rows": 24} in [update.get("size") for update in told["updates"]]
    assert told["updates"][-1]["stopReason"] == "end_turn"
