"""`antiphon chat` where it cannot run, and what it says then."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ANTIPHON = [sys.executable, "-m", "antiphon"]


def in_terminal(*arguments: str, code: str = "", **environment: str) -> tuple[int, str]:
    """What it says on a terminal before it draws anything."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", code, *arguments] if code else [*ANTIPHON, *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return done.returncode, done.stderr.decode()


def read_until(terminal: int, enough: Callable[[bytes], bool]) -> None:
    shown, deadline = b"", time.monotonic() + 60
    while not enough(shown):
        assert select.select([terminal], [], [], deadline - time.monotonic())[0], shown[-500:]
        shown += os.read(terminal, 65536)


def test_without_a_terminal_it_names_the_commands_that_need_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [*ANTIPHON, "chat", "--data", str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert b"attach" in done.stderr
    assert b"prompt" in done.stderr
    assert done.stdout == b""


def test_on_a_dumb_terminal_too(tmp_path: Path) -> None:
    code, said = in_terminal("chat", "--data", str(tmp_path), TERM="dumb")
    assert code == 2
    assert "antiphon chat needs a terminal" in said


def test_without_textual_it_says_what_to_install(tmp_path: Path) -> None:
    hidden = (
        "import sys, importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'textual' else found(name, *a)\n"
        "from antiphon.cli import main; main()"
    )
    code, said = in_terminal("chat", "--data", str(tmp_path), code=hidden)
    assert code == 1
    assert "pip install 'antiphon[tui]'" in said


def test_a_session_needs_a_hub(tmp_path: Path) -> None:
    code, said = in_terminal("chat", "4f2a", "--data", str(tmp_path))
    assert code == 1
    assert "no hub runs" in said


def test_an_agent_that_is_not_there_is_named(tmp_path: Path) -> None:
    code, said = in_terminal("chat", "--data", str(tmp_path), "--", "no-such-agent")
    assert code == 127
    assert "no-such-agent" in said


def test_an_agent_that_dies_is_named_with_its_last_words(tmp_path: Path) -> None:
    dies = "import sys; sys.exit('no key')"
    code, said = in_terminal("chat", "--data", str(tmp_path), "--", sys.executable, "-c", dies)
    assert code == 1
    assert "no key" in said


def test_it_quits_when_its_terminal_is_closed_without_a_signal(tmp_path: Path) -> None:
    """A terminal that is not the controlling one sends no SIGHUP: only reads and writes fail."""
    ours, theirs = pty.openpty()
    command = [*ANTIPHON, "chat", "--data", str(tmp_path), "--", *ANTIPHON, "rehearse"]
    environment = {**os.environ, "TERM": "xterm-256color", "ANTIPHON_REHEARSAL_PACE": "0"}
    chat = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=tmp_path
    )
    os.close(theirs)
    try:
        read_until(ours, lambda shown: b"rehears" in shown)
        os.write(ours, b"/stream 9999\r")
        read_until(ours, lambda shown: len(shown) > 20_000)
        os.close(ours)
        assert chat.wait(60) == 0
    finally:
        chat.kill()
        chat.wait()
