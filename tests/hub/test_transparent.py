"""A v1 agent and a v1 client through the hub, held against the same pair alone: they say the same.

The pairs are of our own making, of the official SDKs, and acpx with real agents. `recorded.py` stands between
the two, and writes down every frame.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from antiphon.transports.base import Transport
from antiphon.transports.processes.child import ChildTransport
from tests.agent.talk import INFO, Talk
from tests.hub.running import AGENT, ANTIPHON, served
from tests.peers.agents import acpx, prepare
from tests.peers.test_interop import AGENTS, CLIENTS, available

RECORDED = [sys.executable, str(Path(__file__).parent / "recorded.py")]
DEADLINE = 60.0
COMMANDS = "available_commands_update"
IDS = frozenset({"sessionId", "toolCallId", "terminalId"})
VOLATILE = re.compile(r'"(durationMs|pid)": \d+|PGID: \d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
"""What is another one each time that an agent is run."""
SWITCHES = frozenset({"fast", "ultracode"})
"""Options that claude-agent-acp tells as a choice to clients that know no switches. The hub does, and so they
are switches to it, which it keeps from v1 clients that did not ask for them."""
Frame = dict[str, Any]


def talked(client: Callable[[Sequence[str]], list[str]], agent: Sequence[str], path: Path) -> list[str]:
    """What a client got to hear, and what it said, while it drove an agent."""
    call = client([*RECORDED, str(path), "--", *agent])
    result = subprocess.run(call, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = path.read_text().splitlines()
    return [
        line
        for way in "<>"
        for line in _told(way, [json.loads(each[1:]) for each in lines if each[0] == way])
    ]


def _told(way: str, frames: list[Frame]) -> list[str]:
    """One direction, in order, without what is a pair's own: ids are numbered, `_meta` of ours is not there.

    Left out are `initialize`, as a hub is no agent of that name; methods that are no part of the protocol;
    what an agent tells when the last turn is over, which the client may not be there for; and tallies, which
    real agents tell at any moment. So they do with their commands, which are put in front. What a question
    tells of its call, an update may tell before or after (PERM-V2-03).
    """
    named: dict[str, str] = {}
    calls: dict[str, Frame] = {}
    commands: list[Frame] = []
    told: list[Frame] = []
    for frame in frames[1:]:
        params = frame.get("params", {})
        update = params.get("update", {})
        tag = update.get("sessionUpdate", "")
        if not frame.get("method", "session/").startswith("session/") or tag == "usage_update":
            continue
        if frame.get("error", {}).get("code") == -32601:
            continue  # acpx's word for a method of an agent's own
        frame.get("result", {}).pop("models", None)  # qwen-code's, and no part of ACP: not passed on so far
        for command in update.get("availableCommands", ()):
            if command.get("input") is None:
                command.pop("input", None)  # null for absent, which nobody can tell apart
        if frame.get("method") == "session/new":
            params.pop("_meta", None)  # acpx has some for the agents that it knows by their commands
        if frame.get("method") == "session/request_permission":
            call = calls.setdefault(params["toolCall"]["toolCallId"], {})
            call.update(params["toolCall"])
            told = [each for each in told if _call_of(each) != call["toolCallId"]]
            params["toolCall"] = {**call}
        elif tag.startswith("tool_call"):
            call = calls.setdefault(update["toolCallId"], {})
            fields = {**update, "sessionUpdate": None}
            if tag == "tool_call_update" and fields.items() <= call.items():
                continue
            call.update(fields)
        (commands if tag == COMMANDS else told).append(frame)
    while told and told[-1].get("method") == "session/update":
        told.pop()
    plain = [_plain(frame, named) for frame in (*commands, *told)]
    return [f"{way} {VOLATILE.sub('…', json.dumps(frame, sort_keys=True))}" for frame in plain]


def _call_of(frame: Frame) -> str | None:
    id: str | None = frame.get("params", {}).get("update", {}).get("toolCallId")
    return id


def _plain(value: Any, named: dict[str, str], key: str = "") -> Any:
    if isinstance(value, dict):
        kept = {name: _plain(each, named, name) for name, each in value.items() if name != "messageId"}
        if "_meta" in kept and isinstance(kept["_meta"], dict):
            kept["_meta"].pop("antiphon", None)
        if kept.get("_meta", 0) in ({}, None):
            del kept["_meta"]
        if "jsonrpc" in kept and "id" in kept:
            kept["id"] = named.setdefault(f"id {kept['id']}", f"id {len(named)}")
        return kept
    if isinstance(value, list):
        kept = [each for each in value if not (key == "configOptions" and each["id"] in SWITCHES)]
        return [_plain(each, named, key) for each in kept]
    return named.setdefault(value, f"{key} {len(named)}") if key in IDS else value


def by_acpx(text: str, cwd: Path) -> Callable[[Sequence[str]], list[str]]:
    options = ["--cwd", str(cwd), "--approve-all", "--format", "json", "--timeout", "30"]
    return lambda agent: [*acpx(), *options, "--agent", shlex.join(agent), "exec", text]


@pytest.mark.parametrize(
    ("agent", "client"),
    [
        ("python-sdk-v1", "python-sdk-v1"),
        ("ts-sdk-v1", "ts-sdk-v1"),
        ("antiphon", "python-sdk-v1"),
        ("antiphon", "ts-sdk-v1"),
    ],
)
def test_a_v1_pair_of_the_sdks_says_the_same_through_the_hub(tmp_path: Path, agent: str, client: str) -> None:
    command = AGENT if agent == "antiphon" else AGENTS[agent][1]()
    drive = CLIENTS[client][1]()
    check(tmp_path, command, lambda target: [*drive, "--", *target])


@pytest.mark.parametrize("agent", ["claude-agent-acp", "qwen-code"])
def test_acpx_and_a_real_agent_say_the_same_through_the_hub(tmp_path: Path, agent: str) -> None:
    available(acpx)
    available(lambda: prepare(agent, tmp_path / agent))
    launch = prepare(agent, tmp_path / agent)
    # qwen-code looks for its commands while it works: they may come after the turn, when acpx has left.
    check(tmp_path, launch.command, by_acpx("TOOL", launch.cwd), commands_may_come_late=agent == "qwen-code")


def check(
    folder: Path,
    agent: Sequence[str],
    client: Callable[[Sequence[str]], list[str]],
    *,
    commands_may_come_late: bool = False,
) -> None:
    expected = talked(client, agent, folder / "alone")
    assert len(expected) > 4
    with served(folder / "hub", "--acp-version", "1", agent=agent):
        through = [*ANTIPHON, "acp", "--data", str(folder / "hub")]
        heard = talked(client, through, folder / "through")
    if commands_may_come_late and _tells_commands(heard) != _tells_commands(expected):
        heard, expected = [[line for line in each if COMMANDS not in line] for each in (heard, expected)]
    assert heard == expected


def _tells_commands(lines: list[str]) -> bool:
    return any(COMMANDS in line for line in lines)


async def converse(transport: Transport) -> list[str]:
    """A v1 client by hand; what it received, in order."""
    talk = Talk(transport)
    async with asyncio.timeout(DEADLINE):
        await talk.call(
            "i", "initialize", protocolVersion=1, clientInfo=INFO, clientCapabilities={"session": {}}
        )
        began = len(talk.seen)
        session = (await talk.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        for number, text in enumerate(("say hello", "stream 20", "ask")):
            talk.prompt(number, session, text)
            if text == "ask":
                asked = await talk.request("session/request_permission")
                outcome = {"outcome": "selected", "optionId": asked["params"]["options"][0]["optionId"]}
                talk.send(id=asked["id"], result={"outcome": outcome})
            await talk.answer_to(number)
        talk.prompt("w", session, "wait")
        await talk.until(lambda frame: "waiting" in str(frame))
        talk.send(method="session/cancel", params={"sessionId": session})
        await talk.answer_to("w")
    return _told("<", [{}, *talk.seen[began:]])


async def test_a_v1_client_by_hand_hears_the_same_through_the_hub_as_without_it(tmp_path: Path) -> None:
    direct = await ChildTransport.spawn(AGENT)
    expected = await converse(direct)
    await direct.aclose()
    with served(tmp_path, "--acp-version", "1", agent=AGENT):
        through = await ChildTransport.spawn([*ANTIPHON, "acp", "--data", str(tmp_path)])
        assert await converse(through) == expected
        await through.aclose()
