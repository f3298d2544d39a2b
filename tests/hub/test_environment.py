"""What child processes inherit: nothing that lets them into a hub."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from antiphon.transports.processes.child import ChildTransport
from antiphon.transports.processes.environment import child_environment
from antiphon.transports.processes.process import Process
from tests.hub.running import DEADLINE
from tests.hub.test_processes import hub_of

AGENT = """
import json, os
from antiphon import Agent

agent = Agent("prints")

@agent.on_prompt
async def answer(turn):
    async with turn.client.terminal(["env"]) as terminal:
        await terminal.wait()
        ran = (await terminal.output()).text
    names = [line.partition("=")[0] for line in ran.splitlines()]
    await turn.say(json.dumps({"agent": dict(os.environ), "terminal": names}))

agent.run()
"""
SECRETS = ("ANTIPHON_TOKEN", "ANTIPHON_HUB", "ANTIPHON_CA", "ANTIPHON_NEW_SECRET", "antiphon_token")


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "antiphon_hidden")
    monkeypatch.setenv("ANTIPHON_REHEARSAL_PACE", "0")


async def test_neither_an_agent_nor_a_terminal_of_the_hub_gets_the_token(tmp_path: Path) -> None:
    agent = [sys.executable, "-c", AGENT]
    async with asyncio.timeout(DEADLINE), hub_of(tmp_path, agent, version=1) as (_, client):
        turn = await (await client.new_session("/")).prompt("print")
        await turn.drained()
    found = json.loads(turn.text)
    assert not {*SECRETS} & {*found["agent"], *found["terminal"]}
    assert "antiphon_hidden" not in turn.text
    assert found["agent"]["ANTIPHON_REHEARSAL_PACE"] == "0"
    assert "PATH" in found["terminal"]


@pytest.mark.parametrize("env", [None, {}, {"ADDED": "1"}])
async def test_no_child_process_inherits_the_token(env: dict[str, str] | None) -> None:
    """The transport that agents and MCP servers are started with, and the process of a terminal."""
    process = Process(["env"], env=env)
    printed = b""
    while read := await process.read():
        printed += read
    await process.wait()
    lines: list[str] = []
    ended = asyncio.Event()

    def note(line: str) -> None:
        lines.append(line)
        if line == "all":
            ended.set()

    code = "import os, sys; [print(name, file=sys.stderr) for name in (*os.environ, 'all')]"
    command = [sys.executable, "-c", code]
    child = await ChildTransport.spawn(command, env=env, on_stderr=note)
    await asyncio.wait_for(ended.wait(), DEADLINE)
    await child.aclose()
    assert not {*SECRETS} & {*lines, *(line.partition("=")[0] for line in printed.decode().splitlines())}
    assert "PATH" in lines


def test_what_the_caller_names_is_passed_on() -> None:
    assert child_environment({"ANTIPHON_TOKEN": "given"})["ANTIPHON_TOKEN"] == "given"
