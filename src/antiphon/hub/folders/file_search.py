"""FileSearch: `_antiphon/find_files`, the files below a session's folder whose paths fit a query.

It reads names only, in a thread, and never leaves the folder: symbolic links are neither followed nor found.
It reads `.gitignore` files itself and runs no `git`, which may run what a foreign repository's settings say.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from antiphon.hub.folders.ignored import Ignored
from antiphon.hub.folders.threads import FolderThreads
from antiphon.schema.antiphon import hub as wire
from antiphon.server.registry import record_of
from antiphon.stores.base import Store

MOST = 20_000
"""Files of one folder that are looked through."""
ENTRIES = 4000
"""Entries of one folder that are read."""
DEEPEST = 12
SECONDS = 1.0
"""How long a folder is read. What was found by then is used."""
FRESH = 5.0
"""Seconds for which the files of a folder are remembered: a user types one letter after the other."""
REMEMBERED = 8
AT_A_TIME = 2
ANSWERED = 50


class _Listing(Struct):
    paths: Sequence[str]
    read_at: float


class FileSearch:
    """Answers searches for the files of stored sessions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.threads = FolderThreads(AT_A_TIME)
        self._listings: OrderedDict[str, _Listing] = OrderedDict()
        self._reading: dict[str, asyncio.Task[_Listing]] = {}

    async def find(self, params: wire.FindFilesRequest) -> wire.FindFilesResponse:
        record = await record_of(self._store, params.session_id)
        folder = record.cwd
        listing = await self._listing(folder)
        found = await asyncio.to_thread(best, listing.paths, params.query)
        files = [wire.FoundFile(path=path, uri=Path(folder, path).as_uri()) for path in found]
        return wire.FindFilesResponse(files=files)

    async def _listing(self, folder: str) -> _Listing:
        known = self._listings.get(folder)
        if known is not None and time.monotonic() - known.read_at < FRESH:
            return known
        reading = self._reading.get(folder)
        if reading is None:
            reading = self._reading[folder] = asyncio.get_running_loop().create_task(self._read(folder))
            reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(reading)  # others may wait for the same reading

    async def _read(self, folder: str) -> _Listing:
        try:
            paths = await self.threads.run(lambda: files_below(folder))
        except TimeoutError:
            paths = []
        finally:
            del self._reading[folder]
        listing = self._listings[folder] = _Listing(paths, time.monotonic())
        self._listings.move_to_end(folder)
        while len(self._listings) > REMEMBERED:
            self._listings.popitem(last=False)
        return listing

    async def aclose(self) -> None:
        for reading in self._reading.values():
            reading.cancel()


def files_below(folder: str) -> list[str]:
    """Return the paths of the files below a folder, relative to it, without hidden folders and what
    `.gitignore` files name. A folder that cannot be read has none."""
    until = time.monotonic() + SECONDS
    try:
        descriptor = os.open(os.path.realpath(folder), os.O_RDONLY | os.O_DIRECTORY)
    except (OSError, ValueError):
        return []
    paths: list[str] = []
    for path in _walk(descriptor, "", Ignored(), until, 0):
        paths.append(path)
        if len(paths) >= MOST:
            break
    return paths


def _walk(descriptor: int, prefix: str, ignored: Ignored, until: float, depth: int) -> Iterator[str]:
    """Yield the files of an open folder and those below it, until a time; close the folder."""
    folders: list[str] = []
    try:
        ignored = ignored.within(descriptor, prefix)
        with os.scandir(descriptor) as entries:
            for number, entry in enumerate(entries):
                if number >= ENTRIES or time.monotonic() > until:
                    break
                path = prefix + entry.name
                if not _is_text(path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith(".") and not ignored.covers(path, folder=True):
                        folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False) and not ignored.covers(path, folder=False):
                    yield path
        if depth >= DEEPEST:
            return
        for name in sorted(folders):
            if time.monotonic() > until:
                return
            # By its open parent and without following a link, which may have taken the place of the folder.
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            try:
                below = os.open(name, flags, dir_fd=descriptor)
            except OSError:
                continue
            yield from _walk(below, f"{prefix}{name}/", ignored, until, depth + 1)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _is_text(path: str) -> bool:
    """Return whether a path can be written in JSON: names are bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def best(paths: Sequence[str], query: str) -> list[str]:
    """Return the paths that have the letters of a query in their order, the best first: those whose name
    begins with it, then has it, then paths that have it, then the rest."""
    wanted = query.lower().replace("\\", "/").removeprefix("./")
    ranked = [(rank, path) for path in paths if (rank := _rank(path.lower(), wanted)) is not None]
    return [path for _, path in sorted(ranked)[:ANSWERED]]


def _rank(path: str, wanted: str) -> tuple[int, int, int] | None:
    if not wanted:
        return 0, path.count("/"), len(path)
    name_at = path.rfind("/") + 1
    at = path.find(wanted, name_at)
    if at >= 0:
        return int(at > name_at), at - name_at, len(path)
    at = path.find(wanted)
    if at >= 0:
        return 2, len(path) - at, len(path)
    for rank, begin in ((3, name_at), (4, 0)):
        first, end = -1, begin
        for letter in wanted:
            found = path.find(letter, end)
            if found < 0:
                break
            first, end = (found if first < 0 else first), found + 1
        else:
            return rank, end - first, len(path)
    return None
