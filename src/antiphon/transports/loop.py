"""The event loop a process of ours runs on: uvloop where it is installed, else asyncio's own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Any:
    if sys.platform == "win32":
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop
