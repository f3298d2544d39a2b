"""The event loop a process of ours runs on: uvloop where it is installed, else asyncio's own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def hold_standard_descriptors() -> None:
    """What was closed at the start is opened on nothing: a loop would take its number, and uvloop abort."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end, as `asyncio.run` does."""
    hold_standard_descriptors()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def run_until_stopped(main: Coroutine[Any, Any, None]) -> None:
    """Run `main` to its end, or until SIGINT or SIGTERM: it is cancelled then, and puts away what it has."""

    async def stoppable() -> None:
        task = asyncio.current_task()
        assert task is not None
        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await main

    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        run(stoppable())


def _loop_factory() -> Any:
    if sys.platform == "win32":
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop
