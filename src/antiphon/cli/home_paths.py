"""Paths as people write them: `~` for the home folder."""

from __future__ import annotations

import os


def homely(path: str) -> str:
    """Shorten the home folder to `~`."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
