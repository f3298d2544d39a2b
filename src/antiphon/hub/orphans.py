"""What an earlier life of this hub started and could not end, because it was killed.

Every agent carries a mark in its environment, and so does whatever it starts: also what has left its process
group, and what was started in the moment before the kill. On Linux the kernel ends the agents themselves.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger("antiphon.hub")

MARK = "ANTIPHON_HUB_MARK"


def reap(mark: str) -> int:
    """Kill what carries the mark; how many there were."""
    found = list(_marked(mark))
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    if found:
        logger.warning("%d processes of an earlier life of this hub were ended", len(found))
    return len(found)


def _marked(mark: str) -> Iterator[int]:
    if sys.platform != "linux":
        return
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # another user's, or gone meanwhile
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)
