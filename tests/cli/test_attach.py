"""Terminals that attach at the same moment to a hub without sessions meet in one session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from antiphon.cli.attach import open_latest
from antiphon.client import Client, ClientSession, connect
from antiphon.schema import v2
from tests.hub.doors import DEADLINE, Doors, doors
from tests.options import connect_options


class Stepwise:
    """A client of a hub that makes each request of `attach` when the test lets it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._steps = asyncio.Semaphore(0)
        self._answers: asyncio.Queue[str] = asyncio.Queue()
        self.opening: asyncio.Task[ClientSession]

    def start(self) -> None:
        # `open_latest` uses no more of a client than this class has.
        self.opening = asyncio.ensure_future(open_latest(self))  # type: ignore[arg-type]

    async def step(self, expected: str) -> None:
        """Let it make its next request, and wait until that is answered."""
        self._steps.release()
        answer = asyncio.ensure_future(self._answers.get())
        await asyncio.wait([answer, self.opening], return_when=asyncio.FIRST_COMPLETED)
        assert answer.done(), f"{expected} was not requested: {self.opening}"
        assert answer.result() == expected

    async def _done(self, name: str, result: Any) -> Any:
        await self._steps.acquire()
        try:
            return await result
        finally:
            self._answers.put_nowait(name)

    async def list_sessions(self) -> AsyncIterator[v2.SessionInfo]:
        for info in await self._done("list", listed(self._client)):
            yield info

    async def new_session(self, cwd: str) -> Any:
        return await self._done("new", self._client.new_session(cwd))

    async def load_session(self, session_id: str, cwd: str) -> Any:
        return await self._done("load", self._client.load_session(session_id, cwd))

    async def delete_session(self, session_id: str) -> None:
        await self._done("delete", self._client.delete_session(session_id))


async def listed(client: Client) -> list[v2.SessionInfo]:
    return [info async for info in client.list_sessions()]


async def come(at: Doors, stack: AsyncExitStack, *names: str) -> list[Client]:
    return [
        await stack.enter_async_context(connect(at.address, token=at.hub.token, **connect_options(name=name)))
        for name in names
    ]


async def test_the_second_terminal_joins_the_first_whatever_happens_there_meanwhile(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as at, AsyncExitStack() as stack:
        clients = await come(at, stack, "ann", "bob")
        ann, bob = map(Stepwise, clients)
        for terminal in (ann, bob):
            terminal.start()
            await terminal.step("list")
        for terminal in (ann, bob):
            await terminal.step("new")
        await ann.step("list")
        session = await ann.opening
        seen = session.events()
        while newest_change(await listed(clients[0])) != session.id:
            await (await session.prompt("hello")).drained()
        for step in ("list", "delete", "load"):
            await bob.step(step)
        assert (await bob.opening).id == session.id
        async for event in seen:
            if event.clients is not None and "bob" in [each.name for each in event.clients]:
                break
        assert [info.session_id for info in await listed(clients[0])] == [session.id]


def newest_change(sessions: list[v2.SessionInfo]) -> str:
    """The session that changed last; of several at the same time, the newest."""
    return max(sessions, key=lambda info: info.updated_at or "").session_id


async def test_a_session_that_is_deleted_before_it_is_loaded_is_not_opened(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as at, AsyncExitStack() as stack:
        owner, client = await come(at, stack, "ann", "bob")
        kept, deleted = [await owner.new_session("/") for _ in range(2)]
        bob = Stepwise(client)
        bob.start()
        await bob.step("list")
        await owner.delete_session(deleted.id)
        for step in ("load", "list", "load"):
            await bob.step(step)
        assert (await bob.opening).id == kept.id
