"""The sidebar: the plan, and the files that tool calls have changed."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.containers import VerticalScroll
from textual.widgets import Static

from antiphon.client import ClientSession
from antiphon.schema import v2
from antiphon.transcripts import patch_counts, relative_path
from antiphon.tui.story.entries import step_text, steps
from antiphon.tui.text.palette import Palette, palette_of
from antiphon.tui.text.plain import plain_line

MOST = 200
ROOM = 100
"""Columns of the screen from which on the sidebar is shown."""
SHOWN = (v2.SessionToolCallUpdate, v2.ToolCallContentChunk, v2.PlanUpdate, v2.PlanRemoved)
"""Updates that may change the sidebar."""
CHANGING = frozenset(["edit", "delete", "move"])


class Sidebar(VerticalScroll, can_focus=False):
    DEFAULT_CSS = """
    Sidebar {
        width: 34; padding: 1 2; background: $surface; border-left: vkey $border; scrollbar-size-vertical: 1;
        & Static { width: 100%; }
    }
    """

    def __init__(self, session: ClientSession, **named: Any) -> None:
        super().__init__(**named)
        self._session = session
        self._wanted: bool | None = None
        """Whether the user wants it; `None` shows it if there is room and content."""
        self._stale = True
        self._static = Static("", markup=False)

    def compose(self) -> Any:
        yield self._static

    def take(self, update: object) -> None:
        if isinstance(update, SHOWN):
            self._stale = True

    def toggle(self) -> None:
        self._wanted = not self.display
        self.keep_up()

    def keep_up(self) -> None:
        """Show or hide the sidebar, and bring it up to date."""
        fold = self._session.fold
        has_content = any(True for _ in fold.tools) or any(True for _ in fold.plans)
        shown = self._wanted if self._wanted is not None else self.app.size.width >= ROOM and has_content
        if shown is not self.display:
            self.display = shown
            self._stale = True
        if shown and self._stale:
            self._stale = False
            self._fill()

    def _fill(self) -> None:
        palette = palette_of(self.app)
        head, none = f"bold {palette.soft}", Text("none", palette.soft)
        planned = [step for plan in self._session.plans for step in steps(plan.latest.plan)]
        plan = _steps(planned, palette) if planned else none
        files = [_file(path, changes, palette) for path, changes in touched(self._session).items()]
        parts = [Text("Plan", head), plan, Text(""), Text("Changed files", head), *(files[:MOST] or [none])]
        self._static.update(Group(*parts))


def touched(session: ClientSession) -> dict[str, tuple[int, int] | None]:
    """Return the files that tool calls have changed, with lines added and removed if they are known."""
    found: dict[str, tuple[int, int] | None] = {}
    for call in session.fold.tools:
        for part in call.content:
            if isinstance(part, v2.Diff):
                patch = None if part.patch is None else patch_counts(part.patch.text)
                for change in part.changes:
                    path = change.get("path") if isinstance(change, dict) else change.path
                    if isinstance(path, str):
                        found[_shown(path, session)] = patch if len(part.changes) == 1 else None
        if str(call.kind) in CHANGING:
            for place in call.locations:
                found.setdefault(_shown(place.path, session), None)
    return found


def _shown(path: str, session: ClientSession) -> str:
    return plain_line(relative_path(path, session.cwd), limit=200)


def _steps(planned: list[tuple[str, str]], palette: Palette) -> Table:
    table = Table.grid()
    for status, words in planned:
        step = step_text(status, words, palette)
        table.add_row(step[:2], step[2:])
    return table


def _file(path: str, changes: tuple[int, int] | None, palette: Palette) -> Text:
    line = Text(path, palette.ink, overflow="fold")
    if changes is not None:
        line.append(f"  +{changes[0]:,}", palette.good)
        line.append(f" −{changes[1]:,}", palette.bad)
    return line
