"""`antiphon` as people run it: in a process of its own, with pipes or on a terminal."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from tests import warm

HERE = Path(__file__).parent
ANTIPHON = [sys.executable, "-m", "antiphon"]
SHOWCASE = [sys.executable, str(HERE / "agents" / "showcase.py")]
COMPLETE = [sys.executable, str(HERE.parents[1] / "examples" / "complete_agent.py")]
DEADLINE = 60.0
_STYLES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-B]|\x1b[=>78]|\r"
)


def raw_agent(how: str) -> list[str]:
    return [sys.executable, str(HERE / "agents" / "raw.py"), how]


def environment(**changes: str) -> dict[str, str]:
    """Ours, without what would change how the command looks."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **changes}


def prompt(
    *arguments: str, agent: Sequence[str] = (), text: str | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """`antiphon prompt …` with its output in files; `text` is its stdin."""
    command = ["prompt", *arguments, *(["--", *agent] if agent else [])]
    return warm.run(command, text=text or "", timeout=DEADLINE, env=environment(**env))


def unstyled(text: str) -> str:
    return _STYLES.sub("", text)


class Terminal:
    """A command on a terminal of its own: read what it shows, type keys."""

    def __init__(self, command: Sequence[str], *, columns: int = 80, rows: int = 50, **env: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=environment(**env),
        )
        os.close(slave)
        self.raw = ""
        self._seen = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE)
        os.close(self._master)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Until it has shown this, after what was waited for before."""
        until = time.monotonic() + DEADLINE
        while True:
            shown = unstyled(self.raw)
            found = re.compile(pattern).search(shown, self._seen)
            if found is not None:
                self._seen = found.end()
                return found
            if not self._read(until):
                raise AssertionError(f"{pattern!r} was not shown:\n{shown}")

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait(self) -> int:
        """Its exit code, once it has shown everything."""
        until = time.monotonic() + DEADLINE
        while self._read(until):
            pass
        return self.process.wait(DEADLINE)

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(until - time.monotonic(), 0))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # that is how the end of a terminal looks
                raise
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)


def ended(pid: int) -> bool:
    """Whether a process ends within the deadline; one that nobody has looked after counts as ended."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with contextlib.closing(os.fdopen(pidfd)):
        return bool(select.select([pidfd], [], [], DEADLINE)[0])
