"""The event loop a process of ours runs on: uvloop where it is installed, else asyncio's own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Collection, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

GRACE = 5.0
"""Seconds that the parts of a program get to end in, unless it says otherwise."""
LAST = 0.5
"""Seconds for what was left behind by all of them."""


def hold_standard_descriptors() -> None:
    """What was closed at the start is opened on nothing: a loop would take its number, and uvloop abort."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end, as `asyncio.run` does. What it leaves behind is cancelled; what goes on all the
    same ends with the process."""
    hold_standard_descriptors()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            return runner.run(main)
        finally:
            _end_what_is_left(runner.get_loop())


def run_until_stopped(main: Coroutine[Any, Any, None], *, grace: float = GRACE) -> None:
    """Run `main` to its end, or until SIGINT or SIGTERM: it is cancelled then, and puts away what it has.
    Where that takes far longer than its parts may, the process ends without it."""

    async def stoppable() -> None:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()

        def stop() -> None:
            task.cancel()
            loop.call_later(2 * grace + GRACE, _end_without, [task])

        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGTERM, stop)
        await main

    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        run(stoppable())


def _end_what_is_left(loop: asyncio.AbstractEventLoop) -> None:
    """Before the runner does it, which would wait for it for ever."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        _, stubborn = loop.run_until_complete(asyncio.wait(left, timeout=LAST))
        if stubborn:
            _end_without(stubborn)


def _end_without(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Something was cancelled and does not end: nobody else can stop this process any more."""
    names = ", ".join(sorted(task.get_name() for task in tasks))
    with contextlib.suppress(Exception):
        sys.stderr.write(f"{names} does not end although it was cancelled; the process ends without it\n")
        sys.stderr.flush()
        sys.stdout.flush()
    os._exit(1)


def _loop_factory() -> Any:
    if sys.platform == "win32":
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop
