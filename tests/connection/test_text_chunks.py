"""Plain text in place: without a task where nothing is ahead of it, and never ahead of anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from antiphon.connection import Connection
from antiphon.schema.updates import TextChunk
from tests.connection.scripted import DEADLINE, Scripted, client


class Heard:
    """What came, by either way, in order; a text `wait` is waited for."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.runs: list[int] = []
        self.tasks: list[asyncio.Task[Any] | None] = []
        self.gate = asyncio.Event()
        self.came = asyncio.Event()

    def texts(self, run: tuple[str, list[TextChunk]]) -> Any:
        session, chunks = run
        self.runs.append(len(chunks))
        self.tasks.append(_current_task())
        for chunk in chunks:
            self.add(f"{session}:{chunk.content.text}")
        return self.gate.wait() if chunks[-1].content.text == "wait" else None

    def update(self, params: Any) -> None:
        self.add(f"{params.session_id}:{params.update.content.text}?")

    def note(self, method: str, params: Any) -> None:
        self.add(method)

    def add(self, what: str) -> None:
        self.order.append(what)
        self.came.set()

    async def until(self, count: int) -> list[str]:
        async with asyncio.timeout(DEADLINE):
            while len(self.order) < count:
                self.came.clear()
                await self.came.wait()
        return self.order


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[Heard, Connection, Scripted]]:
    heard = Heard()
    async with client(notifications={"session/update": heard.update}) as (connection, other):
        connection.handlers.on_text_chunks = heard.texts
        connection.handlers.on_extension_notified = heard.note
        connection.handlers.in_one_stream = True
        yield heard, connection, other


async def test_what_is_read_together_is_one_run_per_session() -> None:
    async with listening() as (heard, _, other):
        for session, text in (("a", "1"), ("a", "2"), ("b", "3"), ("a", "4")):
            other.update(session, text)
        assert await heard.until(4) == ["a:1", "a:2", "b:3", "a:4"]
        assert heard.runs == [2, 1, 1]


async def test_what_has_more_to_it_goes_the_other_way_and_keeps_its_place() -> None:
    async with listening() as (heard, _, other):
        other.update("a", "1")
        other.update("a", "2", _meta={"k": 1})
        other.update("a", "3", vendor=True)
        other.update("a", "4")
        assert [each.rstrip("?") for each in await heard.until(4)] == ["a:1", "a:2", "a:3", "a:4"]
        other.update("a", "5")
        assert (await heard.until(5))[-1] == "a:5"


async def test_what_a_step_waits_for_holds_up_its_session() -> None:
    async with listening() as (heard, _, other):
        other.update("a", "wait")
        await heard.until(1)
        other.update("a", "behind")
        other.update("b", "beside")
        assert await heard.until(2) == ["a:wait", "b:beside"]
        heard.gate.set()
        assert await heard.until(3) == ["a:wait", "b:beside", "a:behind"]


async def test_text_does_not_overtake_a_notification_that_names_no_session() -> None:
    async with listening() as (heard, _, other):
        for number in range(50):
            other.send(method="_vendor/note", params={})
            other.update("a", str(number))
        expected = [each for number in range(50) for each in ("_vendor/note", f"a:{number}")]
        assert [each.rstrip("?") for each in await heard.until(100)] == expected


async def test_a_step_that_fails_costs_its_own_text_alone() -> None:
    async with listening() as (heard, connection, other):
        texts = heard.texts

        def failing(run: tuple[str, list[TextChunk]]) -> Any:
            if run[1][0].content.text == "bad":
                raise RuntimeError("bad")
            return texts(run)

        connection.handlers.on_text_chunks = failing
        other.update("a", "bad")
        await asyncio.sleep(0)
        other.update("b", "good")
        other.update("a", "good")
        assert [each for each in await heard.until(2) if "good" in each] == ["b:good", "a:good"]
