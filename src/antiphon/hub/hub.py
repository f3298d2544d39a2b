"""Hub: the public class. `HubCore` does the work."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from antiphon.client import ProtocolVersion
from antiphon.hub.access.limits import HubLimits
from antiphon.hub.core import HubCore
from antiphon.hub.http.page import Page
from antiphon.hub.options import Access, HubOptions, QuestionOptions
from antiphon.hub.upstream.target import Target, read_address
from antiphon.stores.base import Store
from antiphon.transports.base import Transport
from antiphon.transports.loop import run_until_signal


class Hub:
    """Serves the sessions of agents to many clients, and keeps them in a store.

    `Hub(["claude-agent-acp"], store=SQLiteStore("sessions.db")).run("127.0.0.1:8642")`
    """

    def __init__(
        self,
        agents: Target | Mapping[str, Target],
        *,
        store: Store | None = None,
        version: ProtocolVersion | Mapping[str, ProtocolVersion | None] | None = None,
        options: HubOptions = HubOptions(),
        questions: QuestionOptions = QuestionOptions(),
        access: Access = Access(),
        limits: HubLimits = HubLimits(),
        page: Page | None = None,
    ) -> None:
        """Create a hub. It starts nothing before `run`, `listening` or `serving`.

        agents: a command, or several by name; the first one works unless a client chooses another.
        store: keeps the sessions; by default they stay in memory.
        version: the only ACP version to accept from the agents, or from some of them by name.
        options: how the hub works with its agents.
        questions: who answers the questions of agents.
        access: who may connect, and from where.
        limits: how much of the hub its clients may use.
        page: files for browsers, by their paths, each with its content type.
        """
        self._core = HubCore(
            agents,
            store=store,
            version=version,
            options=options,
            questions=questions,
            access=access,
            limits=limits,
            page=page,
        )

    @property
    def store(self) -> Store:
        """The store that keeps the sessions."""
        return self._core.store

    @property
    def token(self) -> str:
        """The token of the owner."""
        return self._core.token

    @property
    def port(self) -> int | None:
        """The port on which the hub listens; None while it does not."""
        return self._core.port

    @property
    def agents(self) -> list[str]:
        """The names of its agents, the default one first."""
        return list(self._core.agents)

    @property
    def public_url(self) -> str | None:
        """The origin of the hub's page behind a reverse proxy (`Access.public_url`)."""
        return self._core.public_url

    def login_link(self, url: str) -> str:
        """Return a link to the page at `url` that logs one browser in as an owner, once."""
        return self._core.browsers.link(url)

    def run(
        self,
        address: str = "127.0.0.1:8642",
        *,
        or_any_port: bool = False,
        on_ready: Callable[[], None] = lambda: None,
        tls: ssl.SSLContext | None = None,
        insecure: bool = False,
    ) -> None:
        """Serve at an address until SIGTERM or SIGINT. Then the hub accepts nothing new, gives running turns
        some time, and ends every agent. A second signal ends it at once.

        or_any_port: use any free port (`port`) if that of the address is in use.
        on_ready: called once clients can connect.
        tls: needed for an address that other machines can reach.
        insecure: allow such an address without TLS.
        """
        host, port = read_address(address)
        stopped = asyncio.Event()
        task: asyncio.Task[Any] | None = None

        def stop() -> None:
            # A third signal changes nothing: each further cancel would cut short the end of the hub.
            if stopped.is_set() and task is not None and not task.cancelling():
                task.cancel()
            stopped.set()

        async def main() -> None:
            nonlocal task
            task = asyncio.current_task()
            async with self._core.listening(host, port, or_any_port=or_any_port, tls=tls, insecure=insecure):
                on_ready()
                await stopped.wait()
                await self._core.wind_down()

        run_until_signal(main(), on_signal=stop)

    @asynccontextmanager
    async def listening(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: ssl.SSLContext | None = None,
        insecure: bool = False,
    ) -> AsyncIterator[Hub]:
        """Serve at `/acp` inside the block, over HTTP and WebSockets. Port 0 is any free one (`hub.port`)."""
        async with self._core.listening(host, port, tls=tls, insecure=insecure):
            yield self

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Hub]:
        """Run the hub inside the block, without an address: for `serve`, and for clients in this process."""
        async with self._core.serving():
            yield self

    async def serve(self, transport: Transport) -> None:
        """Serve one client of this process, as an owner, until it is gone."""
        await self._core.serve(transport)
