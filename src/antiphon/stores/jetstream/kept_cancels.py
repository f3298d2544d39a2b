"""A cancel that nats-py drops is raised after all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_cancels() -> Iterator[None]:
    """Raise `CancelledError` at the end if the task was cancelled inside. In Python 3.11 `asyncio.wait_for`,
    which nats-py waits with, drops a cancel that comes together with the answer, whether that is a result or
    an error."""
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    try:
        yield
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError
