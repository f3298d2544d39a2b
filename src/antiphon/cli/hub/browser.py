"""Opens the page of a hub in the user's browser, where there is one.

The link lets its reader in, and other users of this machine can read the arguments of a process. So the
browser is given a file that only this user can read, which leads to the link.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from html import escape
from pathlib import Path

from antiphon.private_files import write_private

NAME = "open.html"
_REMOTE = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")


def find_opener(env: Mapping[str, str] = os.environ, *, platform: str = sys.platform) -> str | None:
    """Return the program that opens a file in the user's browser. `None` where nobody would see it: without a
    display, over ssh, in CI, or if stdout or stderr is no terminal."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return None
    if env.get("CI") or any(env.get(name) for name in _REMOTE):
        return None
    if platform == "darwin":
        return shutil.which("open", path=env.get("PATH"))
    if not (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")):
        return None
    return shutil.which("xdg-open", path=env.get("PATH"))


def open_link(link: str, folder: Path, opener: str) -> Path | None:
    """Open a login link. Returns the file that leads to it, for the caller to remove; `None` on failure."""
    file = folder / NAME
    address = escape(link, quote=True)
    page = (
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0;url={address}"><title>Antiphon</title>'
        f'<p><a href="{address}">Open the page of the hub</a></p>\n'
    )
    try:
        write_private(file, page.encode())
        process = subprocess.Popen(
            [opener, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        file.unlink(missing_ok=True)
        return None
    threading.Thread(target=process.wait, name="browser", daemon=True).start()  # leaves no zombie
    return file
