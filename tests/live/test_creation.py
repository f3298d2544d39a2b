"""A session is begun whole or not at all, also where the store fails in between."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.agent.talk import client

from antiphon.agent import Agent
from antiphon.errors import SessionDamaged, SessionExists, StoreFull
from antiphon.live.session import LiveSession
from antiphon.stores import MemoryStore, SQLiteStore
from antiphon.stores.base import SessionRecord

DEADLINE = 60.0


class Failing:
    """Fails to create, or to claim, as long as it is told to."""

    fails: str | None = None

    async def create(self, *arguments: Any, **options: Any) -> None:
        if self.fails == "create":
            raise StoreFull("no room")
        await super().create(*arguments, **options)  # type: ignore[misc]

    async def claim(self, *arguments: Any, **options: Any) -> None:
        if self.fails == "claim":
            raise StoreFull("no room")
        await super().claim(*arguments, **options)  # type: ignore[misc]


class FailingMemory(Failing, MemoryStore):
    pass


class FailingSQLite(Failing, SQLiteStore):
    pass


def make(kind: str, folder: Path) -> Any:
    return FailingMemory() if kind == "memory" else FailingSQLite(folder / "s.db")


KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite"])


@KINDS
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("fails", ["create", "claim"])
async def test_a_session_whose_first_event_is_not_kept_is_not_listed(
    kind: str, version: int, fails: str, tmp_path: Path
) -> None:
    store = make(kind, tmp_path)
    agent = Agent("full", store=store)
    async with agent.serving(), client(agent, version) as talk:
        store.fails = fails
        talk.send(id="new", method="session/new", params={"cwd": "/", "mcpServers": []})
        assert (await talk.answer_to("new"))["error"]["code"] == -32603
        store.fails = None
        assert (await talk.call("list", "session/list"))["sessions"] == []
        await talk.call("again", "session/new", cwd="/", mcpServers=[])
        assert len((await talk.call("all", "session/list"))["sessions"]) == 1


@KINDS
async def test_a_session_that_is_given_up_while_it_is_begun_leaves_nothing(kind: str, tmp_path: Path) -> None:
    """Cancelled after each step of the loop that it takes."""

    def begin() -> asyncio.Task[LiveSession]:
        return asyncio.create_task(LiveSession.create(store, session_id="s", cwd="/", clock=lambda: 0))

    async with asyncio.timeout(DEADLINE), aclosing(make(kind, tmp_path)) as store:
        await store.get("s")  # it is open
        for steps in range(200):
            task = begin()
            for _ in range(steps):
                await asyncio.sleep(0)
            if not task.cancel():
                break  # it takes no more steps
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await store.get("s") is None, steps
        else:
            task = begin()
        async with await task as live:
            assert live.fold.created is not None


@KINDS
async def test_a_session_of_the_same_id_is_not_touched(kind: str, tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), aclosing(make(kind, tmp_path)) as store:
        async with await LiveSession.create(store, session_id="s", cwd="/", clock=lambda: 0):
            with pytest.raises(SessionExists):
                await LiveSession.create(store, session_id="s", cwd="/other", clock=lambda: 0)
        async with await LiveSession.open(store, "s", clock=lambda: 0) as live:
            assert live.fold.created is not None
            assert live.fold.created.cwd == "/"


@KINDS
async def test_a_session_without_events_is_reported_as_damaged_and_kept(kind: str, tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), aclosing(make(kind, tmp_path)) as store:
        await store.create(SessionRecord(session_id="s", cwd="/", created_at=0, updated_at=0))
        for _ in range(2):
            with pytest.raises(SessionDamaged, match="session s is damaged: it has no events"):
                await LiveSession.open(store, "s", clock=lambda: 0)
        [listed] = (await store.list()).records
        assert listed.fault is not None
        assert listed.fault.kind == "damaged"
        assert await store.delete("s")


@KINDS
async def test_a_session_that_cannot_be_read_is_not_kept_from_others(kind: str, tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), aclosing(make(kind, tmp_path)) as store:
        async with await LiveSession.create(store, session_id="s", cwd="/", clock=lambda: 0):
            pass
        read, store.read = store.read, None
        with pytest.raises(TypeError):
            await LiveSession.open(store, "s", clock=lambda: 0)
        store.read = read
        await store.claim("s", "somebody else")
        await store.release("s", "somebody else")
        async with await LiveSession.open(store, "s", clock=lambda: 0):
            pass
