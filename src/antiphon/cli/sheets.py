"""Sheets: where a form is put, line by line, and filled in below each question."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


class Sheet(Protocol):
    def head(self, lines: Iterable[str]) -> None:
        """What it is about."""

    def ask(self, question: str, hint: str = "", choices: Iterable[str] = ()) -> None:
        """A question, what one may answer, and the place for the answer."""

    def tell(self, line: str) -> None:
        """Something about an answer."""


class PlainSheet:
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


class PaintedSheet:
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
