"""The page of a hub is opened where somebody sees it, and nobody else can read the link meanwhile."""

from __future__ import annotations

import stat
import sys
import time
from pathlib import Path

import pytest

from antiphon.cli.hub.browser import find_opener, open_link

SCREEN = {"DISPLAY": ":0"}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A PATH with a browser, which copies the file that it is given."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("xdg-open", "open"):
        program = programs / name
        program.write_text(
            f'#!/bin/sh\n/bin/cat "$1" > {tmp_path}/part && /bin/mv {tmp_path}/part {tmp_path}/seen\n'
        )
        program.chmod(0o755)
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    return str(programs)


def test_a_browser_is_opened_only_where_somebody_sees_it(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(platform: str = "linux", **env: str) -> bool:
        return find_opener({"PATH": path, **env}, platform=platform) is not None

    assert found(**SCREEN)
    assert found(WAYLAND_DISPLAY="wayland-0")
    assert found("darwin")
    assert not found()
    assert not found(**SCREEN, CI="true")
    assert not found("darwin", SSH_CONNECTION="192.0.2.1 1 192.0.2.2 22")
    assert find_opener({"PATH": "/nowhere", **SCREEN}, platform="linux") is None
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert not found(**SCREEN)


def test_the_link_is_in_a_private_file_and_not_in_the_arguments(path: str, tmp_path: Path) -> None:
    opener = find_opener({"PATH": path, **SCREEN}, platform="linux")
    assert opener is not None
    file = open_link('http://127.0.0.1:1/#login=a"b', tmp_path, opener)
    assert file is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    seen, until = tmp_path / "seen", time.monotonic() + 20
    while not seen.exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert 'content="0;url=http://127.0.0.1:1/#login=a&quot;b"' in seen.read_text()
    assert open_link("http://127.0.0.1:1/", tmp_path, str(tmp_path / "no-browser")) is None
    assert not file.exists()
