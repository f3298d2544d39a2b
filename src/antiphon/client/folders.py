"""Folders as they go on the wire."""

from __future__ import annotations

import os

Folder = str | os.PathLike[str]


def folder(path: Folder | None) -> str:
    """RPC-43: paths on the wire are absolute; no path is the current folder."""
    return os.path.abspath(os.fspath(path) if path is not None else os.getcwd())
