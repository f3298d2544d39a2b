"""The header and the status line of a session."""

from __future__ import annotations

import time
from typing import Any

from textual.content import Content
from textual.widgets import Static

from antiphon.client import ClientSession, Link, LinkState
from antiphon.engine import TurnState
from antiphon.schema import v2
from antiphon.transcripts import context_text, option_value
from antiphon.tui.text.plain import folder_line, plain_line

WAITING = "● waiting for your answer"
UNTITLED = "Untitled"


class SessionHeader(Static):
    DEFAULT_CSS = """
    SessionHeader {
        height: 1; padding: 0 2; background: $surface; text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self, **named: Any) -> None:
        super().__init__("", markup=False, **named)

    def show(self, session: ClientSession) -> None:
        agent, where = plain_line(session.agent_name, limit=60), folder_line(session.cwd)
        self.update(
            Content.assemble(
                (plain_line(session.title or UNTITLED, limit=120), "bold"),
                ("   " + " · ".join(part for part in (agent, where) if part), "$foreground 60%"),
            )
        )


class StatusLine(Static):
    DEFAULT_CSS = """
    StatusLine { height: 1; padding: 0 2; color: $foreground 70%; background: $background; }
    """

    def __init__(self, **named: Any) -> None:
        super().__init__("", markup=False, **named)
        self._since: float | None = None

    def show(
        self, session: ClientSession, *, waiting: int, asked: int, silence: float = 0.0, note: str = ""
    ) -> None:
        """`silence`: seconds for which a prompt has had no answer, 0 if none waits that long."""
        silent = Content.styled(f"● no answer for {int(silence)} s", "$warning") if silence else None
        parts = [_link(session.client.link) or silent or self._state(session, asked)]
        if waiting:
            parts.append(Content(f"{waiting} queued"))
        if mode := _mode(session):
            parts.append(Content(mode))
        if usage := plain_line(context_text(session.usage)):
            parts.append(Content(usage))
        if clients := _clients(session):
            parts.append(Content(clients))
        if note:
            parts.append(Content.styled(note, "$warning"))
        self.update(Content(" · ").join(parts))

    def _state(self, session: ClientSession, asked: int) -> Content:
        if session.state is TurnState.IDLE:
            self._since = None
            if asked:
                return Content.styled(WAITING, "$warning")
            return Content.assemble(("○ ", "$success"), "ready")
        if self._since is None:
            self._since = time.monotonic()
        if asked:
            return Content.styled(WAITING, "$warning")
        seconds = int(time.monotonic() - self._since)
        took = f" {seconds} s" if seconds < 60 else f" {seconds // 60} min {seconds % 60} s"
        return Content.assemble(("● ", "$accent"), f"working{took if seconds else ''}")


def _link(link: Link) -> Content | None:
    if link.state is LinkState.RECONNECTING:
        tried = f", attempt {link.attempts}" if link.attempts else ""
        return Content.styled(f"● reconnecting…{tried}", "$warning")
    if link.state is LinkState.GONE:
        return Content.styled(f"● disconnected: {plain_line(link.reason, limit=80)}", "$error")
    return None


def _mode(session: ClientSession) -> str:
    """Return the name of the chosen mode, "" if the agent has no modes."""
    for option in session.config_options:
        if isinstance(option, v2.SessionConfigSelect) and option.category == "mode":
            return plain_line(option_value(option), limit=30)
    return ""


def _clients(session: ClientSession) -> str:
    others = [plain_line(each.name, limit=30) for each in session.clients if not each.you]
    if not others:
        return ""
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    return f"with {', '.join(others[:3])}{more}"
