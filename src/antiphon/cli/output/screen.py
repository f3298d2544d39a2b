"""Screen: shows one turn. The implementations are plain text, a painted terminal and JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self, TextIO

from antiphon.cli.exit_codes import Exit
from antiphon.client import Client, ClientSession, Permission, SessionEvent, TurnEnd

NARROWEST = 40
"""Columns below which a terminal gets plain text."""


class Screen(Protocol):
    """Shows one turn. An async context manager: it may paint while it is open."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def waiting(self, what: str) -> None:
        """Say what the command is waiting for."""

    def begin(self, client: Client, session: ClientSession) -> None:
        """Show that the session is open."""

    def show(self, event: SessionEvent, *, mine: bool) -> None:
        """Show an event. `mine`: it belongs to this turn; of other events people see only notices."""

    def note(self, text: str) -> None:
        """Show a note of the command itself."""

    def asking(self, permission: Permission) -> AbstractContextManager[None]:
        """Show a permission and its options. Inside the block the user has the terminal."""

    def filling(self) -> AbstractContextManager[FormView]:
        """Give a view for a form. Inside the block the user has the terminal."""

    def end(self, end: TurnEnd, *, seconds: float, code: Exit) -> None:
        """Show the end of the turn."""

    def failed(self, line: str, *, code: Exit) -> None:
        """Handle a failure before the end of the turn. The command prints the line on stderr itself."""


def make_screen(*, json: bool) -> Screen:
    if json:
        from antiphon.cli.output.json_lines import JsonScreen

        return JsonScreen(sys.stdout.buffer)
    if _can_paint():
        from antiphon.cli.output.painted import PaintedScreen

        return PaintedScreen()
    from antiphon.cli.output.plain import PlainScreen

    return PlainScreen(sys.stdout, sys.stderr)


def _can_paint() -> bool:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    columns = os.environ.get("COLUMNS", "")  # rich uses it, even if it is 0
    if columns.isdecimal() and len(columns) < 5 and int(columns) < NARROWEST:
        return False
    return os.get_terminal_size(sys.stdout.fileno()).columns >= NARROWEST


class FormView(Protocol):
    """Shows a form, line by line."""

    def head(self, lines: Iterable[str]) -> None:
        """Show who asks, and for what."""

    def ask(self, question: str, hint: str = "", choices: Iterable[str] = ()) -> None:
        """Show a question, a hint and numbered choices, and leave the cursor where the answer goes."""

    def remark(self, line: str) -> None:
        """Show a remark about an answer."""


class PlainForm:
    def __init__(self, out: TextIO) -> None:
        self._out = out

    def head(self, lines: Iterable[str]) -> None:
        self._write("? " + "\n  ".join(lines) + "\n")

    def ask(self, question: str, hint: str = "", choices: Iterable[str] = ()) -> None:
        about = f" ({hint})" if hint else ""
        lines = [f"  {question}{about}", *(f"  {n}  {choice}" for n, choice in enumerate(choices, 1))]
        self._write("\n".join(lines) + "\n  > ")

    def remark(self, line: str) -> None:
        self._write(f"  {line}\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
