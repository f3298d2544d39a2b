"""The agents that a hub offers: their states, and agents that are added while it runs."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from antiphon.hub import catalogue
from tests.hub.doors import DEADLINE, doors, refused

AGENT = [sys.executable, str(Path(__file__).parent / "failing_agent.py")]
ADD, LIST = "_antiphon/add_agent", "_antiphon/list_agents"


def install(folder: Path, name: str) -> None:
    """Put a known agent on the PATH of this process; `monkeypatch` has set it to the folder."""
    program = folder / catalogue()[name].command[0]
    program.write_text(f"#!/bin/sh\nexec {' '.join(AGENT)} login\n")
    program.chmod(0o755)


async def test_agents_are_listed_with_what_is_known_of_them_and_more_can_be_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    install(programs, "qwen")
    offered = {"agents": {"mine": [*AGENT, "fine"], "gone": [str(programs / "gone")]}}
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, **offered, offer_installed=True, add_agents=True) as door,
        door.talk() as owner,
    ):
        first = {info["name"]: info for info in (await owner.call("l1", LIST))["agents"]}
        assert list(first)[:3] == ["mine", "gone", "qwen"]
        assert first["gone"] == {"name": "gone", "status": "missing"}
        assert first["qwen"] == {"name": "qwen", "title": "Qwen Code", "status": "installed"}
        assert first["claude"]["status"] == "missing"
        assert "npm install -g @agentclientprotocol/claude-agent-acp" in first["claude"]["advice"]
        assert first["vibe"]["advice"].startswith("to install it, install uv, then run")
        # What is installed later is offered later.
        install(programs, "codex")
        assert "codex" in [
            i["name"] for i in (await owner.call("l2", LIST))["agents"] if i["status"] == "installed"
        ]
        # An agent that works is ready; one that asks for a login says so, in its own words.
        mine = {"cwd": "/", "mcpServers": [], "_meta": {"antiphon": {"agent": "mine"}}}
        await owner.call("new", "session/new", **mine)
        error = await refused(owner, "q", "session/new", **{**mine, "_meta": {"antiphon": {"agent": "qwen"}}})
        assert error is not None
        assert error["data"] == {
            "reason": "login",
            "details": "Run /login first",
            "advice": "to log in, run `qwen` on the hub's machine, then try again",
        }
        states = {info["name"]: info for info in (await owner.call("l3", LIST))["agents"]}
        assert states["mine"]["status"] == "ready"
        assert states["qwen"]["status"] == "needs_login"
        assert "Run /login first" in states["qwen"]["detail"]
        # An agent that is added can be used at once, and those who come later are told of it.
        added = await owner.call("add", ADD, name="late", command=[*AGENT, "fine"])
        assert added["agent"] == {"name": "late", "status": "installed"}
        await owner.call("n2", "session/new", **{**mine, "_meta": {"antiphon": {"agent": "late"}}})
        async with door.talk(door.token("ann", "owner")) as other:
            # Another owner adds known agents, and no commands: those are run as the user of the hub.
            assert await refused(other, "c", ADD, name="evil", command=["/bin/true"]) == {
                "code": -32003,
                "message": "Forbidden",
                "data": {"reason": "forbidden"},
            }
            assert door.audit(token="ann", method=ADD, outcome="forbidden")
        for id, wrong in enumerate(
            (
                {"name": "mine", "command": ["/bin/true"]},
                {"name": "-x", "command": ["/bin/true"]},
                {"name": "x", "command": [str(programs / "none")]},
                {"name": "x", "command": ["/bin/true\0"]},
                {"name": "nobody-knows"},
                {"name": "claude"},
            )
        ):
            error = await refused(owner, f"w{id}", ADD, **wrong)
            assert error is not None
            assert error["code"] == -32602
        assert door.audit(token="owner", method=ADD, outcome="allowed", act="config")


async def test_only_those_may_add_and_list_who_may_begin_sessions_and_only_where_the_hub_allows_it(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path, add_agents=True) as door:
        tokens = {
            "eye": door.token("eye", "observer"),
            "hand": door.token("hand", "controller"),
            "part": door.token("part", "owner", sessions=["sess_none"]),
        }
        for name, token in tokens.items():
            async with door.talk(token) as talk:
                error = await refused(talk, "l", LIST)
                assert (error is None) == (name == "hand"), name
                error = await refused(talk, "a", ADD, name="x", command=["/bin/true"])
                assert error is not None
                assert error["code"] == -32003, name
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        error = await refused(owner, "a", ADD, name="x", command=["/bin/true"])
        assert error is not None
        assert error["code"] == -32601
