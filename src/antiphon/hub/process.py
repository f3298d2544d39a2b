"""The processes of a hub: its own memory, and agents that an earlier hub process left running.

Every agent carries a mark in its environment, and so does everything that it starts, even in another process
group. On Linux the kernel ends the agents themselves when a hub is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger("antiphon.hub")

MARK = "ANTIPHON_HUB_MARK"
LARGE = 1024 * 1024
"""Bytes from which on a block of memory has a mapping of its own."""
_M_MMAP_THRESHOLD = -3


def map_large_blocks() -> None:
    """Let freed blocks of memory go back to the operating system from this size on.

    glibc gives a large block a mapping of its own. After the first one is freed it raises the size from which
    on it does so, up to 32 MiB. From then on large frames fragment the heap, and an idle hub keeps hundreds
    of megabytes. Other C libraries are left alone.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE)


def reap(mark: str) -> int:
    """Kill every process that carries the mark. Returns how many there were."""
    found = list(_marked(mark))
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    if found:
        logger.warning("processes of an earlier hub ended: %d", len(found))
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
