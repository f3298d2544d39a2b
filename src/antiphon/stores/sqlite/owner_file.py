"""The lock file of an open store: the kernel knows whether the process that made a claim still lives.

A store that claims sessions keeps a file next to the database locked while it is open. The kernel releases
the lock when the process ends, however it ends. A process id could belong to another process by then, or to
another container. (All processes that share a write-ahead log share a kernel.)
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

_NAME = re.compile("[0-9a-f]{16}")


class OwnerFile:
    """The lock file of one open store; made with its first claim."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file: int | None = None
        self.name = secrets.token_hex(8)

    def _path(self, name: str) -> Path:
        return self._database.with_name(f"{self._database.name}-owner-{name}")

    def lock(self) -> None:
        """Be seen as alive from here on. To be called in a write transaction: that keeps sweepers apart."""
        if self._file is None:
            self._sweep()
            path = self._path(self.name)
            self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @property
    def locked(self) -> bool:
        return self._file is not None

    def alive(self, name: str) -> bool:
        """Whether the store with this name is open. A damaged name is that of none."""
        if not _NAME.fullmatch(str(name)):
            return False
        try:
            file = os.open(self._path(name), os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def _sweep(self) -> None:
        """Remove the files of dead processes."""
        prefix = self._path("").name
        for path in self._database.parent.iterdir():
            if path.name.startswith(prefix) and not self.alive(path.name.removeprefix(prefix)):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._file is not None:
            with suppress(FileNotFoundError):
                self._path(self.name).unlink()
            os.close(self._file)
            self._file = None
