"""The files of a session. They are found, read and written only inside its roots, and in bounded amounts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct

from antiphon.agent import AgentSession

MOST_FILES = 5_000
"""Files that one search reads at most."""
MOST_BYTES = 1_000_000
"""Longer files are ignored."""
LONGEST_LINE = 200
_BATCH = 64
"""Files that are read before a cancel takes effect."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "target", "dist"})
"""Folders with generated or downloaded files. Hidden folders are skipped, too."""


class Match(Struct, frozen=True):
    """A line with a match; lines count from 1."""

    path: Path
    line: int
    text: str


def root(session: AgentSession) -> Path:
    """Return the session's folder with links resolved."""
    return Path(os.path.realpath(session.cwd))


def inside(session: AgentSession, name: str) -> Path | None:
    """Return a path inside the session with links resolved, or `None` for a path outside. `name` may be a
    mention: `@` and a path."""
    name = name.removeprefix("@")
    try:
        if session.holds(name or "."):
            return Path(os.path.realpath(os.path.join(session.cwd, name)))
    except (OSError, ValueError):
        pass  # not a valid file name
    return None


def shown(session: AgentSession, path: Path) -> str:
    """Return a path relative to the session's folder, or whole if it is elsewhere."""
    folder = root(session)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


async def files(start: Path) -> list[Path]:
    """Return the files below a folder in order, at most `MOST_FILES`, or the one file that `start` is."""
    return await asyncio.to_thread(_files, start)


def _files(start: Path) -> list[Path]:
    return [start] if start.is_file() else list(islice(_walk(start), MOST_FILES))


def _walk(folder: Path) -> Iterator[Path]:
    """Yield regular files, those of a folder before those of its subfolders. Links are not followed."""
    device = folder.stat().st_dev if folder.exists() else None
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if _entered(Path(at, name), device))
        for name in sorted(names):
            path = Path(at, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path


def _entered(folder: Path, device: int | None) -> bool:
    """Return whether to enter a folder. Other mounts are not entered, because they may not be real files."""
    if folder.name.startswith(".") or folder.name in _SKIPPED:
        return False
    with contextlib.suppress(OSError):
        return folder.lstat().st_dev == device
    return False


def read_text(path: Path) -> str | None:
    """Return the text of a file, or `None` if it is not text, too long or not readable."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        size = path.stat().st_size if path.is_file() else MOST_BYTES + 1
        if size <= MOST_BYTES:
            data = path.read_bytes() if size else b""  # files of `/proc` have no size
            if b"\0" not in data:
                return data.decode()
    return None


async def search(paths: Sequence[Path], text: str) -> AsyncIterator[list[Match]]:
    """Yield the lines that contain a text, in any case, as they are found."""
    for at in range(0, len(paths), _BATCH):
        yield await asyncio.to_thread(_search, paths[at : at + _BATCH], text)


def _search(paths: Sequence[Path], text: str) -> list[Match]:
    wanted = text.casefold()
    return [
        Match(path, number, line.strip()[:LONGEST_LINE])
        for path in paths
        for number, line in enumerate((read_text(path) or "").splitlines(), 1)
        if wanted in line.casefold()
    ]


async def count_lines(paths: Sequence[Path]) -> dict[Path, int]:
    """Count the lines of the text files among `paths`."""
    counted: dict[Path, int] = {}
    for at in range(0, len(paths), _BATCH):
        counted.update(await asyncio.to_thread(_count_lines, paths[at : at + _BATCH]))
    return counted


def _count_lines(paths: Sequence[Path]) -> dict[Path, int]:
    texts = ((path, read_text(path)) for path in paths)
    return {path: len(text.splitlines()) for path, text in texts if text is not None}


def write_text(path: Path, text: str) -> None:
    """Replace the text of a file atomically."""
    path.parent.mkdir(exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(draft, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def remove(path: Path, *, with_folder: str) -> None:
    """Remove a file, and its folder if it has this name and is empty."""
    path.unlink()
    if path.parent.name == with_folder:
        with contextlib.suppress(OSError):
            path.parent.rmdir()
