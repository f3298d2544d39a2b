"""A task that waits for NATS can be cancelled at any moment."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.errors import StoreError
from antiphon.stores.jetstream.kept_cancels import kept_cancels


async def dropping(outcome: str | Exception) -> str:
    """Wait as `asyncio.wait_for` does in Python 3.11 when the answer comes with the cancel."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if isinstance(outcome, Exception):
            raise outcome from None
        return outcome
    raise AssertionError


@pytest.mark.parametrize("outcome", ["an answer", StoreError("an error")], ids=["answer", "error"])
async def test_a_cancel_that_comes_with_an_answer_or_an_error_is_not_lost(outcome: str | Exception) -> None:
    reached = []

    async def ask() -> None:
        try:
            with kept_cancels():
                await dropping(outcome)
        except StoreError:
            pass
        reached.append("went on")

    task = asyncio.ensure_future(ask())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert not reached


async def test_a_timeout_that_comes_with_an_error_ends_the_wait() -> None:
    async def ask() -> None:
        async with asyncio.timeout(0):
            with kept_cancels():
                await dropping(StoreError("an error"))

    with pytest.raises(TimeoutError):
        await ask()


async def test_an_answer_without_a_cancel_is_returned() -> None:
    with kept_cancels():
        assert await asyncio.sleep(0, "an answer") == "an answer"
