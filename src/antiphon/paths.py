"""Paths as people read them."""

from __future__ import annotations

import os


def short_path(path: str) -> str:
    """Shorten the home folder to `~`."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
