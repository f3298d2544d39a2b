"""Child processes, each in its own process group: started, watched, signalled, and never left behind."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence

from antiphon.errors import SpawnFailed
from antiphon.transports.processes.environment import child_environment

living: set[int] = set()
"""Process groups that run. `start_process` adds to it; `watch_exit` removes from it."""


@atexit.register
def _kill_living() -> None:
    for group in living:
        signal_group(group, signal.SIGKILL)


def signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def start_process(
    command: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None,
    env: Mapping[str, str] | None,
    stdin: int,
    stdout: int,
    stderr: int,
) -> subprocess.Popen[bytes]:
    """Start a command in its own process group; `env` is added to its environment. Raises `SpawnFailed`."""
    if isinstance(command, str | bytes) or not command:
        raise SpawnFailed(f"a command must be a non-empty list of strings, got {command!r}")
    try:
        with warnings.catch_warnings():
            # Forking in a process with threads is safe here: the child calls prctl and nothing else.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = subprocess.Popen(
                list(command),
                bufsize=0,
                cwd=cwd,
                env=child_environment(env),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=die_with_us(),
            )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise SpawnFailed(f"cannot start {command[0]!r}: {reason}") from error
    living.add(process.pid)
    return process


def watch_exit(process: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> None:
    """Call `on_exit` in the running loop when a process has ended and the rest of its group was killed.

    Where the system has no pidfd, a thread waits for the process.
    """
    loop = asyncio.get_running_loop()

    def exited() -> None:
        # Kill the group first: until the process is waited for, no other process can get its number.
        signal_group(process.pid, signal.SIGKILL)
        process.wait()
        living.discard(process.pid)
        on_exit()

    try:
        pidfd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):

        def wait() -> None:
            process.wait()
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(exited)

        threading.Thread(target=wait, name=f"wait-{process.pid}", daemon=True).start()
        return

    def readable() -> None:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        exited()

    loop.add_reader(pidfd, readable)


_PR_SET_PDEATHSIG = 1


def die_with_us() -> Callable[[], None] | None:
    """Return the function that a new child runs before its program (`preexec_fn`).

    On Linux it asks the kernel to kill the child when the thread that starts it ends. If this process ignores
    signals (`nohup`, a background command of a script), the child restores their default actions: it has its
    own session, and could not be stopped with these signals otherwise.
    """
    ignored = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]
    if sys.platform != "linux":
        return (lambda: _restore(ignored)) if ignored else None
    import ctypes  # imported on use, because most agents start no process

    prctl, parent = ctypes.CDLL(None, use_errno=True).prctl, os.getpid()

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before prctl
            os._exit(127)
        _restore(ignored)

    return in_child


def _restore(ignored: Sequence[int]) -> None:
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
