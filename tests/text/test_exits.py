"""Whatever an agent or a hub writes into any field, no forbidden character leaves the process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from antiphon.cli.commands.options import HubPlace
from antiphon.cli.output import streams
from antiphon.schema import v2
from antiphon.transcripts import account, to_html, to_markdown
from tests.cli.command import ANTIPHON, Terminal, environment, prompt
from tests.engine.journals import folded, state, update
from tests.hub.running import served
from tests.text.forbidden import forbidden
from tests.text.hostile_fields import CONCEALED, HOSTILE, session_infos, updates

SESSIONS = import_module("antiphon.cli.sessions")  # the package has a command of this name
AGENT = [sys.executable, str(Path(__file__).with_name("walking_agent.py"))]
OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\d*[AK]|2K|\?25[lh]|\?\d+[hl])|\r")
"""What the command itself sends to a terminal: colours, and how it paints its last lines again."""


def check(shown: str) -> None:
    assert CONCEALED not in shown
    assert forbidden(OURS.sub("", shown)) == []


def test_every_update_is_decoded_so_that_its_fields_are_shown() -> None:
    read = [update(tag, **fields).update for tag, fields in updates()]
    assert len(read) > 70
    assert len({type(one) for one in read}) > 20


@pytest.mark.parametrize("way", ["tell", "ask", "form", "visit", "fail"])
def test_prompt_with_pipes(way: str) -> None:
    ran = prompt(way, "-v", agent=AGENT)
    check(ran.stdout + ran.stderr)
    assert "⟨U+202E⟩gnp.exe" in ran.stdout + ran.stderr
    assert "\nforged" not in ran.stderr.replace("~ forged", "")


def test_json_is_exact_and_holds_nothing_hidden() -> None:
    ran = prompt("tell", "--json", agent=AGENT)
    check(ran.stdout)
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    titles = [line["update"].get("title") for line in told if line["kind"] == "update"]
    assert HOSTILE in titles


@pytest.mark.parametrize(
    ("way", "columns"),
    [("tell", 0), ("ask few", 0), ("tell", 1), ("tell", 100), ("ask few", 100), ("form", 100)],
)
def test_prompt_on_a_terminal(way: str, columns: int) -> None:
    """A terminal of 0 columns knows no width; what is shown there is as safe."""
    with Terminal([*ANTIPHON, "prompt", way, "--", *AGENT], columns=columns) as terminal:
        for _ in range(3 if way == "ask few" else 0):
            terminal.wait_for(r"\n  [>›] ")
            terminal.type("2\n")
        if way == "form":
            terminal.wait_for(r"\n  [>›] ")
            terminal.type("\x04")
        terminal.wait()
        check(terminal.raw)
        if way != "tell":
            assert "⟨U+001B⟩]52;c;cm0=⟨U+0007⟩" in re.sub(r"[\r\n] *│? *", "", OURS.sub("", terminal.raw))


def test_a_terminal_that_says_0_columns_in_its_environment() -> None:
    with Terminal([*ANTIPHON, "prompt", "tell", "--", *AGENT], columns=100, COLUMNS="0") as terminal:
        terminal.wait()
        check(terminal.raw)
        assert "⟨U+202E⟩gnp.exe" in terminal.raw


def test_transcripts() -> None:
    bodies = [state("running"), *(update(tag, **fields) for tag, fields in updates())]
    told = account(folded(*bodies, state("idle", stopReason=HOSTILE)), title=HOSTILE, agent=HOSTILE)
    for document in ("".join(to_html(told)), "".join(to_markdown(told))):
        assert forbidden(document) == []
        assert "⟨U+202E⟩" in document


@pytest.mark.parametrize("json_lines", [False, True])
def test_the_sessions_of_a_hostile_hub(
    json_lines: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = {"antiphon": {"agent": HOSTILE, "state": HOSTILE, "clients": HOSTILE}}
    infos = [msgspec.convert({**one, "_meta": meta}, v2.SessionInfo) for one in session_infos()]

    async def listed() -> AsyncIterator[v2.SessionInfo]:
        for info in infos:
            yield info

    @asynccontextmanager
    async def open_client(*_: Any, **__: Any) -> AsyncIterator[Any]:
        yield SimpleNamespace(list_sessions=listed)

    monkeypatch.setattr(SESSIONS, "open_client", open_client)
    monkeypatch.setattr(sys, "stdout", streams.safe_stream(sys.stdout))
    SESSIONS.run_list(json=json_lines, place=HubPlace())
    shown = capsys.readouterr().out
    check(shown)
    assert len(shown.splitlines()) == len(infos) + (not json_lines)  # the header
    if json_lines:
        assert json.loads(shown.splitlines()[0])["sessionId"] == HOSTILE


def test_attach_and_the_commands_about_a_session(tmp_path: Path) -> None:
    def run(*arguments: str, text: str = "") -> str:
        command = [*ANTIPHON, *arguments, "--data", str(tmp_path)]
        ran = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=60, check=False, env=environment()
        )
        check(ran.stdout + ran.stderr)
        return ran.stdout + ran.stderr

    with served(tmp_path, agent=AGENT):
        assert "⟨U+202E⟩gnp.exe" in run("attach", "new", text="tell\n")
        _, listed = run("sessions", "list").splitlines()
        assert "⟨U+202E⟩gnp.exe" in run("sessions", "show", listed.split()[0])
        assert "⟨U+202E⟩gnp.exe" in run("attach", text="fail\n")
