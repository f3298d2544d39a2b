"""A process that ends everything a test run has started, once the run itself is gone, however it ended.

Every process that a test starts inherits a mark in its environment. The watchdog waits for the end of a pipe
whose other end only the test run holds; then it kills what carries the mark, in whichever session or process
group it is. It runs as a script too: `watchdog.py <descriptor> <mark>`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

NAME = "ANTIPHON_TEST_RUN"
PATIENCE = 5.0
"""Seconds in which marked processes may still start others."""


def pytest_configure(config: pytest.Config) -> None:
    """Start it in the process that was called; the workers of xdist are among what it watches."""
    if not hasattr(config, "workerinput"):
        start_watchdog()


def start_watchdog() -> None:
    """Mark the environment of this process, and start a watchdog for what inherits it. Linux only."""
    if sys.platform != "linux":
        return
    os.environ[NAME] = f"{os.getpid()}-{time.time_ns()}"
    theirs, _ = os.pipe()  # ours is not inherited: it closes when this process ends
    subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(theirs), f"{NAME}={os.environ[NAME]}"],
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[theirs],
        start_new_session=True,
    ).returncode = 0  # nobody waits for it, and no warning says so
    os.close(theirs)


def watch(descriptor: int, mark: bytes) -> None:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.read(descriptor, 1)
    until = time.monotonic() + PATIENCE
    while (found := marked(mark)) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def marked(mark: bytes) -> list[int]:
    """Processes that were started with this in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as environ:
                    if mark in environ.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass
    return found


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.argv[2].encode())
