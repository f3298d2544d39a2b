"""An agent that asks a v1 client for files and terminals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from antiphon.client import ClientSession, Workspace
from tests.client.driving import DEADLINE, ByHand, opened

TERMINAL = ["create", "output", "wait_for_exit", "kill", "release"]


DIRECTORIES = {"sessionCapabilities": {"additionalDirectories": {}, "close": {}}}


class Asks:
    """The agent's side of a session: it asks, and gets the answer to that."""

    def __init__(self, agent: ByHand, session: ClientSession) -> None:
        self.agent = agent
        self.session = session
        self._count = 0
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    async def listen(self) -> None:
        while True:
            frame = await self.agent.receive()
            self._waiting.pop(frame["id"]).set_result(frame)

    def begin(self, method: str, **params: Any) -> asyncio.Future[Any]:
        self._count += 1
        answer = self._waiting[f"a{self._count}"] = asyncio.get_running_loop().create_future()
        self.agent.send(id=f"a{self._count}", method=method, params={"sessionId": self.session.id, **params})
        return answer

    async def __call__(self, method: str, **params: Any) -> Any:
        answer = await self.begin(method, **params)
        return answer["error"]["code"] if "error" in answer else answer["result"]

    async def run(self, line: str, **params: Any) -> str:
        return (await self("terminal/create", command="/bin/sh", args=["-c", line], **params))["terminalId"]

    async def until(self, terminal: str, words: str) -> Any:
        """Its output once it holds these words."""
        while True:
            shown = await self("terminal/output", terminalId=terminal)
            if words in shown["output"]:
                return shown


@asynccontextmanager
async def offered(
    folder: Path, workspace: Workspace | None = None, *, also: tuple[Path, ...] = ()
) -> AsyncIterator[Asks]:
    """A session in a folder, and its agent."""
    async with opened(1, DIRECTORIES, workspace=workspace or Workspace()) as (client, agent):
        new = asyncio.ensure_future(client.new_session(folder, additional_directories=also))
        agent.send(id=(await agent.expect("session/new"))["id"], result={"sessionId": "s"})
        asks = Asks(agent, await new)
        listening = asyncio.ensure_future(asks.listen())
        try:
            yield asks
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110 (what another process does is told by nobody)
            await asyncio.sleep(0.005)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
