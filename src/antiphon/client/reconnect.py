"""Reconnect: a client reconnects by itself when its link is lost, and resumes its sessions.

With a cursor a session continues where its link was cut: the missed updates come as they were written, and
open turns go on. Without one it is opened again as the protocol has it, and its contents are replayed.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from antiphon.client.client import Client
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.client.session.session import ClientSession
from antiphon.errors import AntiphonError, LinkLost, LinkRefused, LocalError
from antiphon.schema import v2
from antiphon.schema.version import META_KEY
from antiphon.schema.wire import Unknown
from antiphon.transports.base import Transport
from antiphon.transports.replaceable import ReplaceableTransport

logger = logging.getLogger("antiphon.client")


class Reconnect(Struct, frozen=True, kw_only=True):
    """How a client reconnects after its link was lost."""

    patience: float = 300.0
    """Seconds after which the client gives up."""
    first: float = 0.1
    """Seconds before the first attempt; the delay doubles with each further one. Up to half of a delay is
    left out at random, so that clients that were lost together do not return together."""
    longest: float = 10.0
    """The longest delay in seconds."""
    deadline: float = 60.0
    """Seconds that one attempt may take, until every session is resumed."""
    find: Callable[[], tuple[str, str | None] | None] | None = None
    """Returns the address and the token before each attempt, or None if they are not known now. Without it
    they stay the same."""

    def delay(self, attempt: int) -> float:
        """The delay before an attempt; attempts count from 0."""
        longest = min(self.first * 2.0 ** min(attempt, 32), self.longest)
        return longest * random.uniform(0.5, 1.0)


class AgentChanged(LinkLost):
    """The agent that was reached agreed on another version than before."""


class Reconnector:
    """Owns the transport of a client, and puts new links under it."""

    def __init__(
        self, first: Transport, policy: Reconnect, reach: Callable[[], Awaitable[Transport]]
    ) -> None:
        """`reach` opens a link. Raises `LinkLost`."""
        self.transport = ReplaceableTransport(first, on_cut=self._link_lost)
        self._policy = policy
        self._reach = reach
        self._lost = asyncio.Event()
        self._client: Client | None = None

    @asynccontextmanager
    async def serving(self, client: Client) -> AsyncIterator[None]:
        """Reconnect the client inside the block."""
        self._client = client
        task = asyncio.get_running_loop().create_task(self._run(client))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def _link_lost(self, reason: str) -> None:
        if self._client is None:
            self.transport.end(reason)  # the client is not initialized
            return
        self._client._link_lost(reason)
        self._lost.set()

    async def _run(self, client: Client) -> None:
        while True:
            await self._lost.wait()
            try:
                await self._reconnect(client)
            except LinkLost as error:
                self.transport.end(error.reason)
                return
            except Exception as error:  # a fault in this module, or in `Reconnect.find`
                logger.exception("reconnect failed")
                self.transport.end(f"reconnect failed: {error}")
                return

    async def _reconnect(self, client: Client) -> None:
        """Raises `LinkLost` once the patience is used up."""
        loop = asyncio.get_running_loop()
        until, attempt = loop.time() + self._policy.patience, 0
        while True:
            self._lost.clear()
            left = until - loop.time()
            await asyncio.sleep(min(self._policy.delay(attempt), max(left, 0.0)))
            client.link._attempted()
            attempt += 1
            try:
                async with asyncio.timeout(self._policy.deadline):
                    self.transport.put(await self._reach())
                    await _resume_client(client)
                return
            except (LinkRefused, AgentChanged):
                await self.transport.drop()
                raise
            except (AntiphonError, OSError, TimeoutError) as error:
                await self.transport.drop()
                why = error.reason if isinstance(error, LinkLost) else str(error) or "no answer in time"
                client._link_lost(why)
                if loop.time() >= until:
                    raise LinkLost(f"gave up after {self._policy.patience:g} s: {why}") from error


async def _resume_client(client: Client) -> None:
    """Initialize again and resume every session. Raises `LinkLost` if the link is lost again."""
    before = client.agreement
    await client._initialize()
    if client.agreement != before:
        raise AgentChanged("the agent speaks another version than before")
    resumed = await asyncio.gather(
        *(_resume(client, session) for session in client.sessions), return_exceptions=True
    )
    for failure in resumed:
        if isinstance(failure, BaseException):
            raise failure
    client._link_restored()


async def _resume(client: Client, session: ClientSession) -> None:
    """Resume a session. One that the agent does not have any more, or refuses, is left; the others go on."""
    for child in session.subagents:
        if child.state is not v2.State.IDLE:
            await _resume(client, child.session)  # resumed with its parent it would be replayed
    applied = asyncio.Event()
    client.connection.after_received(session.id, applied.set)
    await applied.wait()  # then the cursor is final
    try:
        if session._core.lasts:
            await _continue_from_cursor(client, session)
        else:
            await _reopen(client, session)
    except LinkLost:
        raise
    except AntiphonError as error:
        logger.warning("session not resumed: %s: %s", session.id, error)
        client.leave_session(session, f"it could not be resumed: {error}")


async def _continue_from_cursor(client: Client, session: ClientSession) -> None:
    core = session._core
    point = core.resume_point
    request = point.request(session.cwd)
    if isinstance(core.dialect, AgentDialectV1):
        where = {"after": point.cursor, "operations": list(point.operations)}
        request = replace(request, replay_from=v2.ReplayFromStart(), meta={META_KEY: where})
    else:
        after: v2.ReplayFrom = Unknown({"type": "_antiphon_after", "seq": point.cursor})
        request = replace(request, replay_from=after)
    await client._agent.opener.continue_from_cursor(request, core)


async def _reopen(client: Client, session: ClientSession) -> None:
    abilities, core = client.abilities, session._core
    if not (abilities.load or abilities.resume):
        raise LocalError("this agent can neither load nor resume a session")
    if abilities.load:
        core.restart()
    request = core.resume_point.request(session.cwd)
    replay_from = v2.ReplayFromStart() if abilities.load else None
    await client._agent.opener.reopen(replace(request, replay_from=replay_from), core, first=True)
