"""Process groups of what was started here: signalled as a whole, and none outlives us."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal

living: set[int] = set()
"""Those that run; who starts one adds it, and takes it away once it has ended."""


@atexit.register
def _kill_the_living() -> None:
    for group in living:
        signal_group(group, signal.SIGKILL)


def signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
