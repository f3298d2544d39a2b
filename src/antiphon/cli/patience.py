"""Says what a command waits for, once that takes longer than a moment."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

A_MOMENT = 5.0
"""Seconds after which somebody who waits is told what for."""
AT_A_HUB = "waiting for the hub to answer; its agent may still be starting"


def print_note(text: str) -> None:
    print(f"antiphon: {text}", file=sys.stderr, flush=True)


@contextmanager
def noted_wait(what: str, note: Callable[[str], None] = print_note) -> Iterator[Callable[[], None]]:
    """Inside the block, note `what` after a moment, unless the function that it gives was called before."""
    timer = asyncio.get_running_loop().call_later(A_MOMENT, note, what)
    try:
        yield timer.cancel
    finally:
        timer.cancel()
