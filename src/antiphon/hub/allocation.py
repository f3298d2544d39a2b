"""Allocation: large blocks of memory go back to the operating system when they are freed.

glibc gives a large block a mapping of its own. After the first one is freed it raises the size from which on
it does so, up to 32 MiB. From then on large frames fragment the heap, and a hub that is at rest again keeps
hundreds of megabytes.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

_M_MMAP_THRESHOLD = -3
LARGE = 1024 * 1024
"""Bytes from which on a block has a mapping of its own."""


def map_large_blocks() -> None:
    """Fix the size from which on glibc maps a block by itself. Other C libraries are left alone."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE)
