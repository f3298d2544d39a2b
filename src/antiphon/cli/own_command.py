"""How this program is called from here, so that commands which are shown can be copied as they stand."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def own_command(*, absolute: bool = False) -> list[str]:
    """The shortest words that lead to this very program."""
    script = Path(sys.argv[0])
    if script.name == "__main__.py":
        return [_short(Path(sys.executable), absolute), "-m", "antiphon"]
    found = shutil.which(script.name)
    if not absolute and found is not None and os.path.realpath(found) == os.path.realpath(script):
        return [script.name]
    return [_short(script, absolute)]


def here(command: str, data: str | None = None) -> str:
    """A command of ours, as it is called from here."""
    place = "" if data is None else f" --data {shlex.quote(data)}"
    return f"{shlex.join(own_command())} {command}{place}"


def _short(path: Path, absolute: bool) -> str:
    whole = Path(os.path.abspath(path))  # not resolved: an environment is known by its link
    if absolute or not whole.is_relative_to(Path.cwd()):
        return str(whole)
    near = str(whole.relative_to(Path.cwd()))
    return near if os.sep in near else os.path.join(os.curdir, near)
