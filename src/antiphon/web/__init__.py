"""The page that a hub serves: files as they are, no build step. It is a client like any other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""What is served, by how its name ends; what has another ending is not."""
ROOT = Path(__file__).with_name("static")
RELOAD = "ANTIPHON_WEB_RELOAD"


def page() -> Mapping[str, tuple[bytes, str]]:
    """The files by their paths, each with its content type. They are read here, once; with
    `ANTIPHON_WEB_RELOAD=1`, for those who work on them, each time that one is asked for."""
    fresh = _Fresh()
    return fresh if os.environ.get(RELOAD) == "1" else dict(fresh)


class _Fresh(Mapping[str, tuple[bytes, str]]):
    """Whatever is there just now. Only paths that were found are read: there are none that lead out."""

    def __getitem__(self, path: str) -> tuple[bytes, str]:
        file = _files()[path]
        return file.read_bytes(), KINDS[file.suffix]

    def __iter__(self) -> Iterator[str]:
        return iter(_files())

    def __len__(self) -> int:
        return len(_files())


def _files() -> dict[str, Path]:
    files = [
        file
        for file in ROOT.rglob("*")
        if file.suffix in KINDS and not file.name.startswith(".") and file.is_file()
    ]
    named = {f"/{file.relative_to(ROOT).as_posix()}": file for file in sorted(files)}
    index = named.get("/index.html")
    return named if index is None else {"/": index, **named}
