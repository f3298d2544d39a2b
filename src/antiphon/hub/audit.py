"""Audit: one JSON line for each act: who did what, in which session, when, and what came of it.

Names and ids only: no secret, and nothing of what was said.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from antiphon.live.presence import rfc3339
from antiphon.private_files import NotPrivate, open_private

logger = logging.getLogger("antiphon.hub")

SIZE = 8 * 1024 * 1024
OLD = 3
"""How many full files stay beside the one that is written."""
CLIP = 200


class Audit:
    """Without a path, nothing is kept. What cannot be written is told in the log, once, and lost."""

    def __init__(self, path: Path | None = None, *, size: int = SIZE) -> None:
        self._path = path
        self._size = size
        self._fd: int | None = None
        self._written = 0
        self._failed = False

    def note(self, act: str, outcome: str, **about: Any) -> None:
        """What is `None` is left out."""
        if self._path is None:
            return
        at = rfc3339(time.time_ns() // 1_000_000)
        told = {name: _clipped(value) for name, value in about.items() if value is not None}
        line = msgspec.json.encode({"at": at, "act": act, "outcome": outcome, **told}) + b"\n"
        try:
            os.write(self._open(len(line)), line)
        except (OSError, NotPrivate) as error:
            if not self._failed:
                why = error.strerror if isinstance(error, OSError) else error
                logger.warning("the audit log cannot be written: %s", why)
            self._failed = True

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self, more: int) -> int:
        assert self._path is not None
        if self._fd is not None and self._written + more > self._size:
            self.close()
            _rotate(self._path)
        if self._fd is None:
            self._fd = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._written = os.fstat(self._fd).st_size
        self._written += more
        return self._fd


def _rotate(path: Path) -> None:
    files = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, OLD + 1))]
    for newer, older in reversed(list(itertools.pairwise(files))):
        if newer.exists():
            os.replace(newer, older)


def _clipped(value: Any) -> Any:
    return value[:CLIP] if isinstance(value, str) else value
