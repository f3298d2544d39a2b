"""Screen: what a turn is shown on. The implementations are plain text, a painted terminal and JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from antiphon.cli.exit_codes import Exit
from antiphon.client import Client, ClientSession, Permission, SessionEvent, TurnEnd

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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

    def filling(self) -> AbstractContextManager[FormView]:
        """Put a form, line by line; inside, the terminal belongs to whoever fills it in."""

    def end(self, end: TurnEnd, *, seconds: float, code: Exit) -> None:
        """The turn is over."""

    def failed(self, line: str, *, code: Exit) -> None:
        """There was no turn, or no end of it; the line itself is told on stderr."""


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
    told = os.environ.get("COLUMNS", "")  # rich believes it, also where it is 0
    if told.isdigit() and int(told) < NARROWEST:
        return False
    return os.get_terminal_size(sys.stdout.fileno()).columns >= NARROWEST


class FormView(Protocol):
    def head(self, lines: Iterable[str]) -> None:
        """What it is about."""

    def ask(self, question: str, hint: str = "", choices: Iterable[str] = ()) -> None:
        """A question, what one may answer, and the place for the answer."""

    def tell(self, line: str) -> None:
        """Something about an answer."""


class PlainForm:
    def __init__(self, out: TextIO) -> None:
        self._out = out

    def head(self, lines: Iterable[str]) -> None:
        self._out.write("? " + "\n  ".join(lines) + "\n")
        self._out.flush()

    def ask(self, question: str, hint: str = "", choices: Iterable[str] = ()) -> None:
        about = f" ({hint})" if hint else ""
        lines = [f"  {question}{about}", *(f"  {n}  {choice}" for n, choice in enumerate(choices, 1))]
        self._out.write("\n".join(lines) + "\n  > ")
        self._out.flush()

    def tell(self, line: str) -> None:
        self._out.write(f"  {line}\n")
        self._out.flush()


class PaintedForm:
    def __init__(self, console: Console, put: Callable[[list[Text]], None]) -> None:
        from rich.text import Text

        self._console = console
        self._put = put
        self._text = Text

    def head(self, lines: Iterable[str]) -> None:
        self._put([self._text.assemble(("? ", "question"), ("\n  ".join(lines), "bold"))])

    def ask(self, question: str, hint: str = "", choices: Iterable[str] = ()) -> None:
        self._print(self._text.assemble(f"  {question}", (f"  {hint}" if hint else "", "faint")))
        for number, choice in enumerate(choices, 1):
            self._print(self._text.assemble((f"  {number} ", "bold"), choice))
        self._console.print(self._text("  › ", "question"), end="")

    def tell(self, line: str) -> None:
        self._print(self._text(f"  {line}", "bad"))

    def _print(self, line: Text) -> None:
        self._console.print(line)
