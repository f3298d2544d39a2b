"""FolderLister: answers `_antiphon/list_folders`.

A folder may hold a million files, so only its first entries are looked at.
"""

from __future__ import annotations

import heapq
import os
import stat
from contextlib import suppress
from pathlib import Path

from antiphon.hub.folders.threads import FolderThreads
from antiphon.schema.antiphon.folders import FolderState, ListFoldersRequest, ListFoldersResponse

SHOWN = 200
"""Folders in one answer."""
LOOKED_AT = 20_000
"""Entries of a folder that are looked at."""
THREADS = 4


class FolderLister:
    def __init__(self, start: str | None) -> None:
        """`start`: the folder in which relative paths begin."""
        self._start = start or "/"
        self.threads = FolderThreads(THREADS)

    async def answer(self, params: ListFoldersRequest) -> ListFoldersResponse:
        path = absolute(params.path, self._start)
        try:
            return await self.threads.run(lambda: list_folders(path, params.prefix or ""))
        except TimeoutError:
            return _no_folders(path, FolderState.UNREADABLE)


def absolute(path: str, start: str) -> str:
    """Return the absolute path that a user means."""
    if path == "~" or path.startswith("~/"):
        with suppress(RuntimeError):  # the user has no home
            path = str(Path.home()) + path[1:]
    return os.path.normpath(os.path.join(start, path))


def list_folders(path: str, prefix: str = "") -> ListFoldersResponse:
    """Return the state of a folder, and the folders in it whose names begin with `prefix`."""
    try:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            return _no_folders(path, FolderState.NOT_A_FOLDER)
        if not os.access(path, os.R_OK | os.X_OK):
            return _no_folders(path, FolderState.UNREADABLE)
        names, more = _folders_in(path, prefix.lower())
    except (FileNotFoundError, NotADirectoryError, ValueError):  # no path has a NUL byte in it
        return _no_folders(path, FolderState.MISSING)
    except OSError:
        return _no_folders(path, FolderState.UNREADABLE)
    shown = heapq.nsmallest(SHOWN, names, key=lambda name: (name.lower(), name))
    return ListFoldersResponse(
        path=path, state=FolderState.OK, folders=shown, truncated=more or len(names) > len(shown)
    )


def _folders_in(path: str, prefix: str) -> tuple[list[str], bool]:
    """Return the names of folders, and whether entries were left out."""
    names: list[str] = []
    with os.scandir(path) as entries:
        for looked_at, entry in enumerate(entries):
            if looked_at == LOOKED_AT:
                return names, True
            hidden = entry.name.startswith(".") and not prefix.startswith(".")
            if not hidden and entry.name.lower().startswith(prefix) and _is_folder(entry):
                names.append(entry.name)
    return names, False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        entry.name.encode()  # a name that is no text cannot be sent
        return entry.is_dir()
    except (OSError, UnicodeEncodeError):
        return False


def _no_folders(path: str, state: FolderState) -> ListFoldersResponse:
    return ListFoldersResponse(path=path, state=state, folders=[], truncated=False)
