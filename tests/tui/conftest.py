"""A scene to play in: the terminal UI over an agent in a process of its own."""

from __future__ import annotations

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from tools.terminal_stage import Stage, staged

from antiphon.tui.widgets import question_card

AGENT = [sys.executable, str(Path(__file__).parent / "agent.py")]


@pytest.fixture(autouse=True)
def _screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment says about terminals is for those who have one."""
    for name in ("NO_COLOR", "COLORFGBG", "TEXTUAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(question_card, "TOO_SOON", 0.0)


def scene(target: Any = AGENT, **asked: Any) -> AbstractAsyncContextManager[Stage]:
    return staged(target, **{"cwd": "/", "size": (100, 30), **asked})
