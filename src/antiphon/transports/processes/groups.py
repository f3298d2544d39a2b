"""Process groups of child processes: signalled as a whole, and none outlives this process."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence

living: set[int] = set()
"""Those that run; who starts one adds it, and takes it away once it has ended."""


@atexit.register
def _kill_the_living() -> None:
    for group in living:
        signal_group(group, signal.SIGKILL)


def signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


_PR_SET_PDEATHSIG = 1


def die_with_us() -> Callable[[], None] | None:
    """Return what a new child runs before its program (`preexec_fn`).

    On Linux it asks the kernel to kill the child when the thread that starts it ends. Where this process
    was started with signals ignored (`nohup`, a background command of a script), the child does not inherit
    that: it has a session of its own, and could not be stopped with them otherwise.
    """
    ignored = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]
    if sys.platform != "linux":
        return (lambda: _restore(ignored)) if ignored else None
    import ctypes  # most agents start no process

    prctl, parent = ctypes.CDLL(None, use_errno=True).prctl, os.getpid()

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died in between
            os._exit(127)
        _restore(ignored)

    return in_child


def _restore(ignored: Sequence[int]) -> None:
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
