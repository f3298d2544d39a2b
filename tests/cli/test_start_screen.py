"""`antiphon` without a word: four things to do, on any terminal, and at once."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.cli.hub.start_screen import WAYS, start_screen
from tests.cli.command import ANTIPHON, Terminal, environment


def plainly(folder: str = ".", **env: str) -> str:
    return subprocess.run(
        ANTIPHON, capture_output=True, text=True, check=True, timeout=20, env=environment(**env), cwd=folder
    ).stdout


def test_it_explains_four_things_with_commands_that_exist() -> None:
    shown = plainly(PATH="/nowhere")
    assert [line.strip() for line in re.findall(r"^  (\d  .+)$", shown, re.MULTILINE)] == [
        f"{number}  {way.title}" for number, way in enumerate(WAYS, 1)
    ]
    assert len(WAYS) == 4
    for way in WAYS:
        program, command, *_ = shlex.split(way.command)
        assert program == "antiphon"
        assert command in main.commands
    assert "AGENT" not in shown  # none is installed, so none is needed
    assert shown.count("\n") <= 28


def test_an_agent_that_is_installed_is_the_example(tmp_path: Path) -> None:
    program = tmp_path / "codex-acp"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    shown = plainly(PATH=str(tmp_path))
    assert "serve -- codex" in shown
    assert "installed here: codex." in shown


def test_the_commands_are_those_that_lead_to_this_very_program(tmp_path: Path) -> None:
    assert f"{sys.executable} -m antiphon serve" in plainly(str(tmp_path), PATH="/nowhere")
    inside = plainly(str(Path(sys.executable).parent), PATH="/nowhere")
    assert f"./{Path(sys.executable).name} -m antiphon serve" in inside


@pytest.mark.parametrize("width", [50, 80, 200])
def test_it_fits_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["antiphon"])
    monkeypatch.setattr("antiphon.cli.hub.start_screen.own_command", lambda: ["antiphon"])
    lines = re.sub(r"\x1b\[\d*m", "", start_screen(width=width)).splitlines()
    assert max(map(len, lines)) <= min(width, 88)


def test_it_is_coloured_on_a_terminal_alone_and_not_where_that_is_not_wanted() -> None:
    assert "\x1b" not in plainly()
    with Terminal(ANTIPHON) as terminal:
        assert terminal.wait() == 0
        assert "\x1b[1m" in terminal.raw
    with Terminal(ANTIPHON, NO_COLOR="1", columns=50) as terminal:
        assert terminal.wait() == 0
        assert "\x1b" not in terminal.raw


@pytest.mark.parametrize(
    "statement", ["import antiphon", "import antiphon.cli", "import antiphon.hub.access.tokens"]
)
def test_nothing_heavy_is_loaded_before_it_is_needed(statement: str) -> None:
    code = f"{statement}; import sys; print(*sys.modules)"
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True, timeout=20).split())
    heavy = {"asyncio", "ssl", "sqlite3", "rich", "textual", "websockets", "antiphon.schema.v2"}
    assert not loaded & heavy
