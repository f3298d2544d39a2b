"""Stand: a real cluster on loopback. Three NATS servers keep every session three times; three hubs share it.

Each hub reaches NATS through a proxy of its own. Whatever a test has killed or cut is mended by `heal`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from antiphon.client import Client, Reconnect
from antiphon.stores import JetStreamOptions, JetStreamStore
from tests.agent.talk import Talk
from tests.cluster.nats_proxy import NatsProxy
from tests.faults.hub_process import HubProcess
from tests.hub.running import AGENT, client_of, talk_to
from tests.stores.nats_servers import NatsCluster

LEASE = 3
DEADLINE = 60.0
START = "120"
"""Seconds that an agent may take to start, also on a machine with much else to do."""
PATIENCE = 120.0
"""Seconds that a look at the store waits for the servers, also on a machine with much else to do."""
SOON = Reconnect(first=0.02, longest=0.2, patience=120.0)


class ClusterHub:
    """One hub of the cluster, and its way to NATS."""

    def __init__(self, folder: Path, proxy: NatsProxy, arguments: Sequence[str]) -> None:
        folder.mkdir(mode=0o700)
        self.name = folder.name
        self.proxy = proxy
        self.process = HubProcess(folder, ["--store", proxy.address, *arguments])
        self.paused = False

    @property
    def acp(self) -> str:
        return self.process.address

    @property
    def token(self) -> str:
        return self.process.token

    def pause(self) -> None:
        """SIGSTOP."""
        self.process.signal(signal.SIGSTOP)
        self.paused = True

    def go_on(self) -> None:
        self.process.signal(signal.SIGCONT)
        self.paused = False

    async def heal(self) -> None:
        self.proxy.heal()
        if self.paused:
            self.go_on()
        if not self.process.is_running:
            await self.process.start()

    def client(self, **asked: Any) -> AbstractAsyncContextManager[Client]:
        return client_of(self.acp, self.token, **asked)

    def talk(self, version: int = 2, **initialize: Any) -> AbstractAsyncContextManager[Talk]:
        return talk_to(self.acp, self.token, version, **initialize)


class Stand:
    def __init__(self, folder: Path, *, agent: Sequence[str] = (), lease: int = LEASE) -> None:
        self.folder = folder
        self._lease = lease
        (folder / "nats").mkdir()
        self.nats = NatsCluster(folder / "nats")
        self.agent_file = folder / "agent.db"
        """What the agents of all hubs keep."""
        self._agent = list(agent) or [*AGENT, "--store", str(self.agent_file)]
        self._proxies: list[NatsProxy] = []
        self.hubs = [self._hub(name, "--label", "here") for name in "abc"]

    def _hub(self, name: str, *arguments: str) -> ClusterHub:
        proxy = NatsProxy([server.port for server in self.nats.servers])
        self._proxies.append(proxy)
        where = ["--replicas", "3", "--lease", str(self._lease), "--start", START, *arguments]
        return ClusterHub(self.folder / name, proxy, [*where, "--", *self._agent])

    @asynccontextmanager
    async def another(self, name: str, *arguments: str) -> AsyncIterator[ClusterHub]:
        """One more hub, with other arguments."""
        hub = self._hub(name, *arguments)
        await hub.process.start()
        try:
            yield hub
        finally:
            hub.process.clear()

    async def start(self) -> None:
        self.nats.start()
        await self.hubs[0].process.start()  # it makes the streams
        await asyncio.gather(*(hub.process.start() for hub in self.hubs[1:]))

    async def heal(self) -> None:
        """Start what is dead, and let everything pass."""
        for server in self.nats.servers:
            server.ensure()
        for hub in self.hubs:
            await hub.heal()
        async with self.store() as store, asyncio.timeout(DEADLINE):
            while True:  # a hub without a lease may lose what it begins
                if len(await store.peers()) >= len(self.hubs):
                    return
                await asyncio.sleep(0.05)

    async def stop(self) -> None:
        await self.heal()
        await asyncio.gather(*(hub.process.end() for hub in self.hubs))
        self.clear()

    def clear(self) -> None:
        """End everything at once."""
        for hub in self.hubs:
            hub.process.clear()
        while self._proxies:
            self._proxies.pop().close()
        self.nats.stop()

    # --- what the cluster knows --------------------------------------------------------------------

    @asynccontextmanager
    async def store(self) -> AsyncIterator[JetStreamStore]:
        """A store like that of the hubs."""
        options = JetStreamOptions(replicas=3, lease=self._lease, patience=PATIENCE)
        async with JetStreamStore(self.nats.address, options) as store:
            yield store

    async def owner(self, session_id: str) -> ClusterHub | None:
        """Return the hub that owns a session."""
        async with self.store() as store:
            owner = await store.owner(session_id)
        return next((hub for hub in self.hubs if owner is not None and hub.process.pid == owner.pid), None)

    async def owned(self, session_id: str, *, not_by: ClusterHub | None = None) -> ClusterHub:
        """Wait until a session has an owner, another one than `not_by`."""
        async with asyncio.timeout(DEADLINE):
            while True:
                owner = await self.owner(session_id)
                if owner is not None and owner is not not_by:
                    return owner
                await asyncio.sleep(0.05)

    def heard_by_agents(self) -> list[str]:
        """Return the texts of all prompts that an agent got, at any hub."""
        log = self.agent_file.with_suffix(".log")
        return log.read_text().splitlines() if log.exists() else []

    def complaints(self) -> str:
        """What the hubs logged."""
        return "\n".join(f"--- {hub.name} ---\n{hub.process.complaints()}" for hub in self.hubs)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that no event tells of."""
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, "it does not come to hold"
        await asyncio.sleep(0.02)


def note(text: str) -> None:
    """Report a measured time, also from a test that passes."""
    sys.stderr.write(f"{text}\n")
