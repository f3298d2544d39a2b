"""The files of a session: found, read and written inside its roots and nowhere else, in bounded pieces."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from antiphon.agent import AgentSession

MOST_FILES = 5_000
"""How many files are looked at in one go."""
MOST_BYTES = 1_000_000
"""A file that is longer is left alone."""
LONGEST_LINE = 200
_BATCH = 64
"""How many are read before a cancel is heard."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "target", "dist"})
"""Folders that hold what was made or fetched, beside those whose name begins with a dot."""


class Match(Struct, frozen=True):
    """A line that has what was looked for; counted from 1."""

    path: Path
    line: int
    text: str


def root(session: AgentSession) -> Path:
    """The session's folder, links resolved."""
    return Path(os.path.realpath(session.cwd))


def inside(session: AgentSession, name: str) -> Path | None:
    """A file or folder of the session, links resolved; None for what leads out of it."""
    try:
        if session.holds(name or "."):
            return Path(os.path.realpath(os.path.join(session.cwd, name)))
    except (OSError, ValueError):
        pass  # no name that a file could have
    return None


def shown(session: AgentSession, path: Path) -> str:
    """A path as people of this session call it."""
    folder = root(session)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


async def files(start: Path) -> list[Path]:
    """The files below a folder, or the one that it is, in their order; `MOST_FILES` at most."""
    return await asyncio.to_thread(_files, start)


def _files(start: Path) -> list[Path]:
    if start.is_file():
        return [start]
    found: list[Path] = []
    for path in _walk(start):
        found.append(path)
        if len(found) == MOST_FILES:
            break
    return found


def _walk(folder: Path) -> Iterator[Path]:
    """Regular files, those of a folder before those of its folders; links are not followed."""
    device = folder.stat().st_dev if folder.exists() else None
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if _entered(Path(at, name), device))
        for name in sorted(names):
            path = Path(at, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path


def _entered(folder: Path, device: int | None) -> bool:
    """Whether to look into a folder: not where something else is mounted, which may be no files at all."""
    if folder.name.startswith(".") or folder.name in _SKIPPED:
        return False
    with contextlib.suppress(OSError):
        return folder.lstat().st_dev == device
    return False


def read_text(path: Path) -> str | None:
    """What a file says, with its line endings; None for one that is no text, too long, or not readable."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        size = path.stat().st_size if path.is_file() else MOST_BYTES + 1
        if size <= MOST_BYTES:
            data = path.read_bytes() if size else b""  # what has no size may be no file: `/proc`
            if b"\0" not in data:
                return data.decode()
    return None


async def search(paths: Sequence[Path], text: str) -> AsyncIterator[list[Match]]:
    """The lines that hold a text, upper and lower case alike, as they are found."""
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
    """How many lines each text among some files has."""
    counted: dict[Path, int] = {}
    for at in range(0, len(paths), _BATCH):
        counted.update(await asyncio.to_thread(_count_lines, paths[at : at + _BATCH]))
    return counted


def _count_lines(paths: Sequence[Path]) -> dict[Path, int]:
    texts = ((path, read_text(path)) for path in paths)
    return {path: len(text.splitlines()) for path, text in texts if text is not None}


def write_text(path: Path, text: str) -> None:
    """Put a text in place of a file at one moment: nobody ever sees half of it."""
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
    """Remove a file, and its folder if that has this name and nothing else in it."""
    path.unlink()
    if path.parent.name == with_folder:
        with contextlib.suppress(OSError):
            path.parent.rmdir()
