"""The built-in agent: each of its pieces, on the wire, in both versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.rehearsal import make_agent
from tests.agent.talk import Talk, client


async def begin(talk: Talk, cwd: Path) -> str:
    result = await talk.call("new", "session/new", cwd=str(cwd), mcpServers=[])
    return str(result["sessionId"])


async def play(talk: Talk, session: str, text: str, version: int) -> None:
    talk.prompt(1, session, text)
    if version == 1:
        assert (await talk.answer_to(1))["result"] == {"stopReason": "end_turn"}
    else:
        await talk.update("state_update", state="idle", stopReason="end_turn")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "not a language model"),
        ("stream 30", "Sentence 30 of 30"),
        ("list", "song.txt"),
        ("read song.txt", "one voice"),
        ("read ../secret", "There is no file"),
        ("read link", "There is no file"),
        ("plan", "All three steps are done."),
    ],
)
async def test_a_piece_says_what_it_should(text: str, said: str, version: int, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "song.txt").write_text("one voice")
    (tmp_path / "secret").write_text("hidden")
    (folder / "link").symlink_to(tmp_path / "secret")
    async with client(make_agent(), version) as talk:
        await play(talk, await begin(talk, folder), text, version)
        assert said in str(talk.seen)
        assert "hidden" not in str(talk.seen)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("choice", "said"), [("allow", "ended with code 0"), ("reject", "not run")])
async def test_a_command_runs_only_where_it_is_allowed(
    choice: str, said: str, version: int, tmp_path: Path
) -> None:
    async with client(make_agent(), version) as talk:
        session = await begin(talk, tmp_path)
        talk.prompt(1, session, "run touch made")
        asked = await talk.request("session/request_permission")
        talk.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": choice}})
        if version == 1:
            await talk.answer_to(1)
        else:
            await talk.update("state_update", state="idle")
        assert said in str(talk.seen)
        assert (tmp_path / "made").exists() is (choice == "allow")


async def test_a_timer_reports_after_its_turn_and_then_the_agent_speaks_by_itself(tmp_path: Path) -> None:
    async with client(make_agent()) as talk:
        session = await begin(talk, tmp_path)
        await play(talk, session, "timer 0", 2)
        await talk.update("tool_call_update", status="completed")
        await talk.update("agent_message")
        await talk.update("state_update", state="idle")
        assert "has rung" in str(talk.seen)
        assert talk.story().count("user_message") == 1, "nobody prompted for it"


def test_the_command_serves_stdio_and_keeps_its_sessions_where_it_is_told(tmp_path: Path) -> None:
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    new = '{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'
    command = [sys.executable, "-m", "antiphon", "rehearse", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(hello)
    process.stdin.flush()
    assert "antiphon-rehearsal" in process.stdout.readline()
    process.stdin.write(new)
    process.stdin.flush()
    assert "sess_" in process.stdout.readline()
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()
    assert (tmp_path / "data" / "sessions.db").exists()


def test_help_is_there_for_every_command() -> None:
    for arguments in (["--help"], ["rehearse", "--help"]):
        result = subprocess.run(
            [sys.executable, "-m", "antiphon", *arguments], capture_output=True, text=True, check=True
        )
        assert "Usage: antiphon" in result.stdout
