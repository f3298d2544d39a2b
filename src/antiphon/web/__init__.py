"""The page that a hub serves: static files without a build step. The page is an ordinary client."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""Content types by file ending. Files with other endings are not served."""
PLAIN = re.compile(r"(?:/\w[\w.-]*)+", re.ASCII)
"""Paths without `..` and without hidden files."""
ROOT = Path(__file__).with_name("static")
RELOAD = "ANTIPHON_WEB_RELOAD"


def page() -> Mapping[str, tuple[bytes, str]]:
    """Return the files by path, each with its content type.

    They are read once; with `ANTIPHON_WEB_RELOAD=1`, for development, at each request.
    """
    fresh = _Fresh()
    return fresh if os.environ.get(RELOAD) == "1" else dict(fresh)


class _Fresh(Mapping[str, tuple[bytes, str]]):
    """Reads each file when it is requested."""

    def __getitem__(self, path: str) -> tuple[bytes, str]:
        file = _file(path)
        if file is None:
            raise KeyError(path)
        return file.read_bytes(), KINDS[file.suffix]

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and _file(path) is not None

    def __iter__(self) -> Iterator[str]:
        found = (f"/{file.relative_to(ROOT).as_posix()}" for file in sorted(ROOT.rglob("*")))
        return (path for path in ("/", *found) if path in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _file(path: str) -> Path | None:
    """Return the file for a path, or `None` if it does not exist or is not served."""
    if path == "/":
        path = "/index.html"
    if not PLAIN.fullmatch(path):
        return None
    file = ROOT / path[1:]
    return file if file.suffix in KINDS and os.path.isfile(file) else None  # any other test can raise
