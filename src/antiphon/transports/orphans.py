"""No orphans: a process that we start ends with us, however we end."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_us() -> Callable[[], None] | None:
    """What a new child runs before its program (`preexec_fn`): ask the kernel to kill it when we die."""
    if _libc is None:
        return None
    prctl, parent = _libc.prctl, os.getpid()

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died in between
            os._exit(127)

    return in_child
