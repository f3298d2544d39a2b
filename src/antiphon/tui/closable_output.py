"""ClosableOutput: what the UI writes to, which may be closed at any time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class ClosableOutput:
    """Drops what is written to a terminal that was closed.

    Textual writes in a thread, through a short queue. An error would end that thread, and the UI would wait
    for room in the queue without end.
    """

    def __init__(self, file: TextIO, on_closed: Callable[[], object]) -> None:
        self._file = file
        self._on_closed = on_closed
        self._closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> None:
        self._try(lambda: self._file.write(text))

    def flush(self) -> None:
        self._try(self._file.flush)

    def _try(self, act: Callable[[], object]) -> None:
        if self._closed:
            return
        try:
            act()
        except OSError:
            self._closed = True
            self._on_closed()


@contextmanager
def closable_output(on_closed: Callable[[], object]) -> Iterator[None]:
    """Let Textual, which writes to `sys.__stderr__`, write to a `ClosableOutput`. `on_closed` is called in
    the thread that writes."""
    terminal: Any = sys.__stderr__
    setattr(sys, "__stderr__", ClosableOutput(terminal, on_closed))  # noqa: B010  # typed as final
    try:
        yield
    finally:
        setattr(sys, "__stderr__", terminal)  # noqa: B010
