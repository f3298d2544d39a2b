"""Tasks: whatever an owner has started ends with the owner, and no failure is lost."""

from __future__ import annotations

import asyncio
import logging

import pytest

from antiphon.errors import RequestCancelled, StoreError
from antiphon.server.tasks import Tasks

DEADLINE = 10


def others() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]


async def test_the_end_of_the_owner_ends_its_tasks_and_timers() -> None:
    tasks, ended = Tasks("a test", grace=DEADLINE), asyncio.Event()
    called: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = tasks.start_soon(work())
    timer = tasks.call_later(0.001, lambda: called.append("late"))
    await asyncio.sleep(0)
    await tasks.aclose()
    assert ended.is_set()
    assert task.cancelled()
    assert timer.cancelled()
    assert not called
    assert not others()


async def test_nothing_begins_after_the_end_of_the_owner() -> None:
    tasks, begun = Tasks("a test", grace=DEADLINE), []
    await tasks.aclose()

    async def work() -> None:
        begun.append("work")

    task = tasks.start_soon(work())
    timer = tasks.call_later(0, lambda: begun.append("timer"))
    await asyncio.wait([task])
    assert task.cancelled()
    assert timer.cancelled()
    assert not begun


async def test_the_failure_of_a_task_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks("session sess_1", grace=DEADLINE)

    async def fail() -> None:
        raise ValueError("broken")

    with caplog.at_level(logging.ERROR):
        await tasks.start_soon(fail())
    assert "task of session sess_1 failed" in caplog.text
    assert "broken" in caplog.text


@pytest.mark.parametrize(
    ("failure", "traceback"), [(StoreError("moved"), False), (ValueError("moved"), True)]
)
async def test_an_expected_failure_without_callers_is_one_line_of_the_log(
    caplog: pytest.LogCaptureFixture, failure: Exception, traceback: bool
) -> None:
    tasks, go = Tasks("a test", grace=DEADLINE), asyncio.Event()

    async def fail() -> None:
        await go.wait()
        raise failure

    caller = asyncio.ensure_future(tasks.share("key", fail))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    go.set()
    with caplog.at_level(logging.WARNING):
        await tasks.drain()
    assert "moved" in caplog.text
    assert ("Traceback" in caplog.text) is traceback


async def test_shared_work_is_done_once_and_every_caller_gets_its_result() -> None:
    tasks, go, runs = Tasks("a test", grace=DEADLINE), asyncio.Event(), []

    async def work() -> str:
        runs.append("run")
        await go.wait()
        return "done"

    callers = [asyncio.ensure_future(tasks.share("key", work)) for _ in range(3)]
    await asyncio.sleep(0)
    assert tasks.is_shared("key")
    callers[0].cancel()
    go.set()
    assert await asyncio.gather(*callers[1:]) == ["done", "done"]
    assert runs == ["run"]
    assert not tasks.is_shared("key")


async def test_a_failure_of_shared_work_goes_to_its_callers_and_else_into_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = Tasks("a test", grace=DEADLINE)

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await tasks.share("heard", fail)
    assert not caplog.records
    caller = asyncio.ensure_future(tasks.share("unheard", fail))
    await asyncio.sleep(0)
    caller.cancel()
    with caplog.at_level(logging.ERROR):
        await tasks.drain()
        await asyncio.wait([caller])
    assert "task of a test failed" in caplog.text


async def test_abandoned_work_has_ended_and_its_callers_are_told() -> None:
    tasks, began, ended = Tasks("a test", grace=1.0), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    caller = asyncio.ensure_future(tasks.share("key", work))
    gone = asyncio.ensure_future(tasks.share("key", work))
    await began.wait()
    gone.cancel()
    await tasks.abandon_shared("key")
    assert ended.is_set()
    with pytest.raises(RequestCancelled):
        await caller
    with pytest.raises(asyncio.CancelledError):
        await gone
    await tasks.abandon_shared("key")  # nothing is under way
    assert not tasks.is_shared("key")


async def test_a_task_that_does_not_end_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    tasks, go = Tasks("a test", grace=0.01), asyncio.Event()

    async def stubborn() -> None:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    task = tasks.start_soon(stubborn())
    await asyncio.sleep(0)
    with caplog.at_level(logging.ERROR):
        await tasks.aclose()
    assert "task of a test does not end" in caplog.text
    go.set()
    await asyncio.wait([task])
