"""Child processes, each in its own process group: started, watched, signalled, and never left behind."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import os
import shutil
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
    environment = child_environment(env)
    try:
        launched = _launched(command, cwd, environment)
        with warnings.catch_warnings():
            # Forking in a process with threads is safe here: the child calls prctl and nothing else.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = subprocess.Popen(
                launched or list(command),
                bufsize=0,
                cwd=cwd,
                env=environment,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=None if launched else die_with_us(),
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


# Python has to fork to run a function in the child: 48 ms of CPU in a process of 270 MB. Without one a
# start takes less than 1 ms.


def _launched(
    command: Sequence[str], cwd: str | os.PathLike[str] | None, env: Mapping[str, str]
) -> list[str] | None:
    """Return the command as `setpriv` starts it, which asks the kernel for what `die_with_us` does.

    `None` if there is no `setpriv`, or no such program: `Popen` says what is wrong with it.
    """
    launcher, name = _launcher(_ignored()), os.fspath(command[0])
    if launcher is None or "=" in name:
        return None
    if os.path.dirname(name):
        name = os.path.join(cwd or "", name)
    found = shutil.which(name, path=os.pathsep.join(os.get_exec_path(env)))
    return [*launcher, *command] if found else None


@functools.cache
def _launcher(ignored: Sequence[int]) -> list[str] | None:
    """Return the command of util-linux that starts another one, which dies with us, if it works here. The
    `env` of GNU restores the ignored signals."""
    if sys.platform != "linux":
        return None
    launcher = ["setpriv", "--pdeathsig", "KILL", "--"]
    if ignored:
        launcher += ["env", f"--default-signal={','.join(map(str, ignored))}", "--"]
    try:
        tried = subprocess.run([*launcher, "true"], capture_output=True, check=False)
    except OSError:
        return None
    return launcher if tried.returncode == 0 else None


def _ignored() -> tuple[int, ...]:
    """Return the signals that this process ignores, besides those that `Popen` restores in a child."""
    others = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
    return tuple(int(number) for number in others if signal.getsignal(number) is signal.SIG_IGN)


_PR_SET_PDEATHSIG = 1


def die_with_us() -> Callable[[], None] | None:
    """Return the function that a new child runs before its program (`preexec_fn`).

    On Linux it asks the kernel to kill the child when the thread that starts it ends. If this process ignores
    signals (`nohup`, a background command of a script), the child restores their default actions: it has its
    own session, and could not be stopped with these signals otherwise.
    """
    ignored = _ignored()
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
