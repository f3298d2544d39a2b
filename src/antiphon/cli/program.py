"""This process: its own command line, and the signals that end it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from pathlib import Path


def own_command(*, absolute: bool = False) -> list[str]:
    """Return the shortest command that starts this program."""
    script = Path(sys.argv[0])
    if script.name == "__main__.py":
        return [_short(Path(sys.executable), absolute), "-m", "antiphon"]
    found = shutil.which(script.name)
    if not absolute and found is not None and os.path.realpath(found) == os.path.realpath(script):
        return [script.name]
    return [_short(script, absolute)]


def command_line(command: str, data: str | None = None) -> str:
    """Return a command line of this program, as a user would type it here."""
    place = "" if data is None else f" --data {shlex.quote(data)}"
    return f"{shlex.join(own_command())} {command}{place}"


def _short(path: Path, absolute: bool) -> str:
    whole = Path(os.path.abspath(path))  # not resolved, because a virtual environment is found by its link
    if absolute or not whole.is_relative_to(Path.cwd()):
        return str(whole)
    near = str(whole.relative_to(Path.cwd()))
    return near if os.sep in near else os.path.join(os.curdir, near)


def accept_stop_signals() -> None:
    """Let SIGINT and SIGTERM end this process although it was started with them ignored.

    A shell without job control starts its background commands with SIGINT ignored. SIGHUP stays ignored
    where it was: `nohup` asks for that.
    """
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def note_protocol_on_stdin(instead: str) -> None:
    """Tell a user who starts a command for programs at a terminal what to run instead."""
    if sys.stdin.isatty():
        advice = f"try `{command_line(instead)}` instead, or end it with Ctrl-C"
        print_note(f"this command speaks ACP on stdin and stdout; {advice}")


def print_note(text: str) -> None:
    print(f"antiphon: {text}", file=sys.stderr, flush=True)
