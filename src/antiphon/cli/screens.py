"""Where a turn is shown: what the screens have in common, and which of them it is."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self

from antiphon.cli.exits import Exit
from antiphon.cli.sheets import Sheet
from antiphon.client import Client, ClientSession, Permission, SessionEvent, TurnEnd

NARROWEST = 40
"""Columns below which nothing is laid out."""


class Screen(Protocol):
    """Shows one turn. An async context manager: it may paint while it is open."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def waiting(self, what: str) -> None:
        """What is being waited for, from now on."""

    def begin(self, client: Client, session: ClientSession) -> None:
        """The session is there."""

    def show(self, event: SessionEvent, *, mine: bool) -> None:
        """Something happened: in this turn, or beside it. People are shown only notices of what is beside
        it."""

    def note(self, text: str) -> None:
        """A remark of ours."""

    def asking(self, permission: Permission) -> AbstractContextManager[None]:
        """Put a question with its options; inside, the terminal belongs to whoever answers."""

    def filling(self) -> AbstractContextManager[Sheet]:
        """Put a form, line by line; inside, the terminal belongs to whoever fills it in."""

    def end(self, end: TurnEnd, *, seconds: float, code: Exit) -> None:
        """The turn is over."""

    def failed(self, line: str, *, code: Exit) -> None:
        """There was no turn, or no end of it; the line itself is told on stderr."""


def make_screen(*, json: bool) -> Screen:
    if json:
        from antiphon.cli.json_lines import JsonLines

        return JsonLines(sys.stdout.buffer)
    if _can_paint():
        from antiphon.cli.rendering import Painted

        return Painted()
    from antiphon.cli.plain import Plain

    return Plain(sys.stdout, sys.stderr)


def _can_paint() -> bool:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    told = os.environ.get("COLUMNS", "")  # rich believes it, also where it is 0
    if told.isdigit() and int(told) < NARROWEST:
        return False
    return os.get_terminal_size(sys.stdout.fileno()).columns >= NARROWEST
