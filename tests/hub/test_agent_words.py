"""An error of an agent has its own words, its last lines on stderr, and what to do."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import read_failure
from antiphon.errors import ErrorObject, LinkLost, SpawnFailed
from antiphon.hub.upstream.errors import ANY_LOGIN, FailedAgent, explained, to_request_error
from tests.hub.doors import DEADLINE, doors, refused

AGENT = [sys.executable, str(Path(__file__).parent / "failing_agent.py")]
CLAUDE = FailedAgent("claude", ["claude-agent-acp"], ("a line",))
LOGIN = "to log in, run `claude /login` on the hub's machine, then try again"


async def test_a_client_gets_the_words_of_an_agent_whose_prompt_fails(tmp_path: Path) -> None:
    agents = {how: [*AGENT, how] for how in ("internal", "mute", "dies")}
    agents["gone"] = [str(tmp_path / "claude-agent-acp")]
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, agents=agents) as door,
        door.talk(version=1) as talk,
    ):

        async def error_of(how: str) -> Any:
            meta = {"antiphon": {"agent": how}}
            made = await talk.call(f"n{how}", "session/new", cwd="/", mcpServers=[], _meta=meta)
            text = [{"type": "text", "text": "hello"}]
            return await refused(talk, f"p{how}", "session/prompt", sessionId=made["sessionId"], prompt=text)

        assert await error_of("internal") == {
            "code": -32603,
            "message": "Internal error",
            "data": {"details": "Not logged in · Please run /login", "advice": ANY_LOGIN},
        }
        mute = await error_of("mute")
        assert mute["data"] == {"stderr": "cannot find the model\x1b[31m"}
        assert read_failure(mute["message"], mute["data"]).lines == [
            "Internal error",
            "  cannot find the model",
        ]
        died = await error_of("dies")
        assert died["data"]["reason"] == "interrupted"
        assert died["data"]["stderr"] == "out of memory"
        assert "exited with code 3" in died["data"]["details"]
        params = {"cwd": "/", "mcpServers": [], "_meta": {"antiphon": {"agent": "gone"}}}
        gone = await refused(talk, "gone", "session/new", **params)
        assert gone is not None
        assert "npm install -g @agentclientprotocol/claude-agent-acp" in gone["data"]["advice"]


@pytest.mark.parametrize(
    ("error", "data"),
    [
        (ErrorObject(-32000, "Authentication required"), {"advice": LOGIN}),
        (
            ErrorObject(-32603, "Internal error", {"details": "Invalid API key", "more": 1}),
            {"details": "Invalid API key", "more": 1, "advice": LOGIN},
        ),
        (ErrorObject(-32603, "Internal error", "no such model"), {"details": "no such model"}),
        (ErrorObject(-32603, "Internal error"), {"stderr": "a line"}),
        (ErrorObject(-32603, "The model is overloaded", {"advice": "pay"}), {}),
        (ErrorObject(-32603, "odd", [1]), [1]),
        (ErrorObject(-32602, "log in", {"details": "log in"}), {"details": "log in"}),
    ],
)
def test_what_an_agent_answered_is_explained_and_kept(error: ErrorObject, data: Any) -> None:
    told = explained(error, CLAUDE)
    assert told == ErrorObject(error.code, error.message, data)


def test_advice_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    failed = to_request_error(SpawnFailed("there is no npx"), FailedAgent("x", ["npx", "-y", "x"]))
    assert failed.data["advice"] == "install Node.js on the hub's machine, then try again"
    lost = LinkLost(
        "claude-agent-acp exited with code 127", stderr=["env: 'node': No such file or directory"]
    )
    assert to_request_error(lost, CLAUDE).data == {
        "reason": "agent",
        "stderr": "env: 'node': No such file or directory",
        "advice": "install Node.js on the hub's machine, then try again",
    }


def test_a_failure_is_read_from_what_agents_send() -> None:
    read = read_failure(
        "Internal error", {"details": "Not\x1b[2J logged in", "advice": "log in", "stderr": "a\nb"}
    )
    assert read.lines == ["Not⟨U+001B⟩[2J logged in", "  a", "  b", "Log in."]
    assert read_failure("It failed.", {"error": {"message": "no model"}}).message == "It failed: no model"
    assert read_failure("It failed: no model", "no model").lines == ["It failed: no model"]
    assert read_failure("It ended (bye)", {"stderr": "bye"}).lines == ["It ended (bye)"]
    assert read_failure("odd", [1]).lines == ["odd"]
