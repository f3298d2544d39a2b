"""Reconnecting: a client whose link was lost comes back by itself, sooner at first and then more rarely."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from antiphon.client.returning import ComesBackOtherwise, come_back
from antiphon.errors import AntiphonError, LinkLost, LinkRefused
from antiphon.transports.base import Transport
from antiphon.transports.lasting import LastingTransport

if TYPE_CHECKING:
    from antiphon.client.client import Client

logger = logging.getLogger("antiphon.client")


class Reconnect(Struct, frozen=True, kw_only=True):
    """How a client comes back after its link was lost."""

    patience: float = 300.0
    """For how many seconds it is tried before the client gives up."""
    first: float = 0.1
    """Seconds before the first attempt; before each further one twice as many. Up to a half of them is left
    out by chance, so that those who were lost together do not return together."""
    longest: float = 10.0
    deadline: float = 60.0
    """Seconds that one attempt may take, until every session is resumed."""
    find: Callable[[], tuple[str, str | None] | None] | None = None
    """Says before each attempt where to go, the address and the token; `None` if that is not known just now.
    Without it, it is where it was."""

    def delay(self, attempt: int) -> float:
        """Before the attempt of this number, which counts from 0."""
        longest = min(self.first * 2.0 ** min(attempt, 32), self.longest)
        return longest * random.uniform(0.5, 1.0)


Reach = Callable[[], Awaitable[Transport]]
"""Opens a link. Raises `LinkLost`."""


class Reconnecting:
    def __init__(self, first: Transport, policy: Reconnect, reach: Reach) -> None:
        self.transport = LastingTransport(first, on_cut=self._cut)
        self._policy = policy
        self._reach = reach
        self._lost = asyncio.Event()
        self._client: Client | None = None

    @asynccontextmanager
    async def serving(self, client: Client) -> AsyncIterator[None]:
        """Bring the client back inside the block."""
        self._client = client
        task = asyncio.get_running_loop().create_task(self._run(client))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def _cut(self, reason: str) -> None:
        if self._client is None:
            self.transport.end(reason)  # there is nothing to come back to
            return
        self._client.cut(reason)
        self._lost.set()

    async def _run(self, client: Client) -> None:
        while True:
            await self._lost.wait()
            try:
                await self._return(client)
            except LinkLost as error:
                self.transport.end(error.reason)
                return
            except Exception as error:  # a mistake of ours, or of who says where to go
                logger.exception("a client could not come back")
                self.transport.end(f"coming back failed: {error}")
                return

    async def _return(self, client: Client) -> None:
        """Raises `LinkLost` once it is no use any more."""
        loop = asyncio.get_running_loop()
        until, attempt = loop.time() + self._policy.patience, 0
        while True:
            self._lost.clear()
            left = until - loop.time()
            await asyncio.sleep(min(self._policy.delay(attempt), max(left, 0.0)))
            client.link.tried()
            attempt += 1
            try:
                async with asyncio.timeout(self._policy.deadline):
                    self.transport.put(await self._reach())
                    await come_back(client)
                return
            except (LinkRefused, ComesBackOtherwise):
                await self.transport.drop()
                raise
            except (AntiphonError, OSError, TimeoutError) as error:
                await self.transport.drop()
                why = error.reason if isinstance(error, LinkLost) else str(error) or "no answer in time"
                client.cut(why)
                if loop.time() >= until:
                    raise LinkLost(f"given up after {self._policy.patience:g} s: {why}") from error
