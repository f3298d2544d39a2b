"""SIGINT and SIGTERM end every command that runs until stopped, also one started with them ignored."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from antiphon.cli.exit_codes import Exit
from tests.cli.command import ANTIPHON, DEADLINE, SHOWCASE, Terminal

DEAF = ["sh", "-c", 'trap "" INT TERM; exec "$0" "$@"', *ANTIPHON]
"""Starts a command with the signals ignored, as a shell without job control does in the background."""
SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
PIPE = subprocess.PIPE


@contextmanager
def started(
    *arguments: str, command: Sequence[str] = DEAF, stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([*command, *arguments], stdin=stdin, stdout=PIPE, stderr=PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def hub(folder: Path, *, command: Sequence[str] = DEAF) -> Iterator[subprocess.Popen[bytes]]:
    with started("serve", "--port", "0", "--data", str(folder), command=command) as process:
        assert process.stderr is not None
        assert process.stderr.readline()  # it is ready when it says where it is
        yield process


@SIGNALS
def test_a_hub_ends(tmp_path: Path, number: signal.Signals) -> None:
    with hub(tmp_path) as process:
        process.send_signal(number)
        assert process.wait(DEADLINE) == 0


@SIGNALS
def test_signals_that_come_while_a_hub_exits_do_not_change_its_exit_code(
    tmp_path: Path, number: signal.Signals
) -> None:
    with hub(tmp_path, command=ANTIPHON) as process:
        code = None
        while code is None:
            process.send_signal(number)
            try:
                code = process.wait(0.002)
            except subprocess.TimeoutExpired:
                continue
        assert process.stderr is not None
        stderr = process.stderr.read()
        assert code == 0, stderr
        assert b"Traceback" not in stderr


@SIGNALS
def test_a_prompt_is_cancelled(number: signal.Signals) -> None:
    with started("prompt", "hang", "--", *SHOWCASE) as process:
        assert process.stdout is not None
        assert process.stdout.read(7) == b"I wait."
        process.send_signal(number)
        assert process.wait(DEADLINE) in (Exit.CANCELLED, 128 + number)


@SIGNALS
def test_the_relay_of_an_editor_ends(tmp_path: Path, number: signal.Signals) -> None:
    shape = {"protocolVersion": 2, "info": {"name": "editor", "version": "1"}, "capabilities": {}}
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": shape}
    with hub(tmp_path), started("acp", "--data", str(tmp_path), stdin=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(initialize).encode() + b"\n")
        process.stdin.flush()
        assert b'"result"' in process.stdout.readline()
        process.send_signal(number)
        assert process.wait(DEADLINE) in (Exit.CANCELLED, -number)


@SIGNALS
def test_the_terminal_ui_ends(tmp_path: Path, number: signal.Signals) -> None:
    with Terminal([*DEAF, "chat", "--data", str(tmp_path), "--", *SHOWCASE]) as terminal:
        terminal.wait_for("ready")
        terminal.process.send_signal(number)
        assert terminal.wait() in (Exit.DONE, Exit.CANCELLED, -number)
