"""Runs a program on an event loop: uvloop if it is installed, else asyncio's default."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

GRACE = 5.0
"""Default seconds that the parts of a program get to end."""
CANCEL_SECONDS = 2.0
"""Seconds that remaining tasks get to end after they were cancelled; the machine may be busy."""
SWITCH_INTERVAL = 0.0001
"""Seconds after which a waiting thread may take the interpreter lock from the event loop. A busy loop
releases the lock between two turns and takes it again before a waiting thread has woken, and each release
restarts the wait. With Python's default of 5 ms and shorter turns, the thread that reads the store waits
until the loop is idle."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that ask a program to end."""


def hold_standard_descriptors() -> None:
    """Open closed standard descriptors on `/dev/null`: a loop would reuse their numbers, and uvloop abort."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is `fd`


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end, as `asyncio.run` does. Remaining tasks are cancelled; if they do not end, the
    process exits."""
    return _run(main, exit_code=lambda: 1)


def _run(main: Coroutine[Any, Any, T], *, exit_code: Callable[[], int]) -> T:
    """`exit_code` returns the exit code for a process whose tasks do not end."""
    hold_standard_descriptors()
    sys.setswitchinterval(SWITCH_INTERVAL)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            return runner.run(main)
        finally:
            _end_remaining_tasks(runner.get_loop(), exit_code)


def run_until_signal(main: Coroutine[Any, Any, None], *, on_signal: Callable[[], None]) -> None:
    """Run `main` to its end. Call `on_signal` in its event loop for every SIGINT and SIGTERM.

    The handlers are set even if the process was started with these signals ignored, as a shell without job
    control starts background commands. After a signal and the end of `main`, further signals are ignored, so
    that the process keeps the exit code of a clean end.
    """
    received = False

    async def watched() -> None:
        nonlocal received
        loop = asyncio.get_running_loop()

        def receive() -> None:
            nonlocal received
            received = True
            on_signal()

        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, receive)
        try:
            await main
        finally:
            if received:  # a closing loop restores the default handlers: block signals until then
                signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)

    try:
        with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
            # After a signal the exit code is 0, even if a task does not end.
            _run(watched(), exit_code=lambda: 0 if received else 1)
    finally:
        if received:
            sys.unraisablehook = _without_late_signals
            for number in STOP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _without_late_signals(unraisable: Any) -> None:
    """Report an exception that nobody can catch, unless it is that a signal came while it began to be
    ignored."""
    error = unraisable.exc_value
    if not (isinstance(error, OSError) and "ignored due to race condition" in str(error)):
        sys.__unraisablehook__(unraisable)


def run_until_stopped(main: Coroutine[Any, Any, None], *, grace: float = GRACE) -> None:
    """Run `main` to its end, or cancel it on SIGINT or SIGTERM. If it then takes far longer than `grace`
    seconds, the process exits."""
    task: asyncio.Task[Any] | None = None

    async def cancellable() -> None:
        nonlocal task
        task = asyncio.current_task()
        await main

    def cancel() -> None:
        assert task is not None
        task.cancel()
        asyncio.get_running_loop().call_later(2 * grace + GRACE, _end_without, [task])

    run_until_signal(cancellable(), on_signal=cancel)


def _end_remaining_tasks(loop: asyncio.AbstractEventLoop, exit_code: Callable[[], int]) -> None:
    """Cancel remaining tasks with a deadline. The runner would wait for them without one."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        _, stubborn = loop.run_until_complete(asyncio.wait(left, timeout=CANCEL_SECONDS))
        if stubborn:
            _end_without(stubborn, exit_code())


def _end_without(tasks: Collection[asyncio.Task[Any]], exit_code: int = 1) -> None:
    """Exit the process, because cancelled tasks do not end."""
    names = ", ".join(sorted(getattr(task.get_coro(), "__qualname__", task.get_name()) for task in tasks))
    with contextlib.suppress(Exception):
        sys.stderr.write(f"tasks do not end although they were cancelled: {names}; the process ends now\n")
        sys.stderr.flush()
        sys.stdout.flush()
    os._exit(exit_code)


def _loop_factory() -> Any:
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop
