"""The head of the screen: which session this is."""

from __future__ import annotations

import os
from typing import Any

from textual.content import Content
from textual.widgets import Static

from antiphon.client import ClientSession
from antiphon.tui.plain import plain_line


class SessionHeader(Static):
    DEFAULT_CSS = """
    SessionHeader {
        height: 1; padding: 0 2; background: $surface; text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self, **named: Any) -> None:
        super().__init__("", markup=False, **named)

    def show(self, session: ClientSession) -> None:
        agent = plain_line(session.agent_name, limit=60)
        self.update(
            Content.assemble(
                (plain_line(session.title or "New session", limit=120), "bold"),
                ("   " + " · ".join(part for part in (agent, _home(session.cwd)) if part), "$foreground 60%"),
            )
        )


def _home(path: str) -> str:
    home = os.path.expanduser("~")
    short = "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
    return plain_line(short, limit=120)
