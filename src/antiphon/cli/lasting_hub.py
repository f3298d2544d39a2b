"""LastingHub: the hub as a transport that outlives the hub's process, unknown to the editor before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from antiphon.cli.conversation import OWN, Conversation, encode, read
from antiphon.cli.exits import Failure
from antiphon.client import Reconnect
from antiphon.errors import AntiphonError, LinkLost, LinkRefused
from antiphon.jsonrpc.lines import Received
from antiphon.jsonrpc.oversized import Overlong, failure_of
from antiphon.transports.base import Receive, Transport
from antiphon.transports.lasting import LastingTransport


class LastingHub(LastingTransport):
    """`reach` opens a link to the hub, wherever that is now."""

    def __init__(
        self, first: Transport, reach: Callable[[], Awaitable[Transport]], policy: Reconnect
    ) -> None:
        super().__init__(first, on_cut=self._cut)
        self._reach = reach
        self._policy = policy
        self._talk = Conversation()
        self._lost = asyncio.Event()
        self._own: dict[str, asyncio.Future[Any]] = {}
        self._editor: Receive

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Come back inside the block, whenever the hub is lost."""
        task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    # --- frames ------------------------------------------------------------------------------------

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self._editor = receive
        super().start(self._received, ended)

    def _received(self, frames: list[Received]) -> None:
        told: list[Received] = []
        for frame in frames:
            if isinstance(frame, Overlong):
                failure = failure_of(frame)
                if not frame.answers:
                    super().send(failure)
                    continue
                frame = failure
            if self._is_own(frame):
                continue
            passed = self._talk.from_hub(frame)
            if passed is not None:
                told.append(passed)
        if told:
            self._editor(told)

    def _is_own(self, frame: bytes) -> bool:
        said = read(frame) if self._own and f'"{OWN}'.encode() in frame else None
        answer = None if said is None else self._own.pop(str(said.get("id")), None)
        if said is None or answer is None:
            return False
        if not answer.done():
            answer.set_result(said.get("result"))
        return True

    def send(self, frame: bytes) -> None:
        onward, back = self._talk.from_editor(frame)
        if onward is not None:
            super().send(onward)
        if back is not None:
            self._editor([back])

    # --- coming back -------------------------------------------------------------------------------

    def _cut(self, reason: str) -> None:
        told: list[Received] = [*self._talk.cut()]
        if told:
            self._editor(told)
        own, self._own = self._own, {}
        for answer in own.values():
            if not answer.done():
                answer.set_exception(LinkLost(reason))
        self._lost.set()

    async def _run(self) -> None:
        while True:
            await self._lost.wait()
            try:
                await self._return()
            except (AntiphonError, Failure) as error:
                self.end(str(error))
                return

    async def _return(self) -> None:
        loop = asyncio.get_running_loop()
        until, attempt = loop.time() + self._policy.patience, 0
        while True:
            self._lost.clear()
            await asyncio.sleep(self._policy.delay(attempt))
            attempt += 1
            try:
                async with asyncio.timeout(self._policy.deadline):
                    self.put(await self._reach())
                    await self._resume()
                return
            except LinkRefused:
                raise
            except (LinkLost, OSError, TimeoutError) as error:
                await self.drop()
                if loop.time() >= until:
                    raise LinkLost(f"given up after {self._policy.patience:g} s: {error}") from error

    async def _resume(self) -> None:
        opening = self._talk.opening()
        if opening is not None:
            await self._ask(opening)
            await asyncio.gather(*map(self._ask, self._talk.resuming()))
        for frame in self._talk.back():
            super().send(frame)

    async def _ask(self, said: dict[str, Any]) -> Any:
        """What the hub refuses, the editor finds out when it wants something of it."""
        id = f"{OWN}{len(self._own)}:{said['method']}"
        answer = self._own[id] = asyncio.get_running_loop().create_future()
        super().send(encode({"id": id, **said}))
        return await answer
