"""ClientCase: what a scenario for clients is handed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from antiphon.conformance.client.played_agent import Manner, PlayedAgent
from antiphon.conformance.client.run import ClientRun
from antiphon.conformance.client.socket_transport import SocketTransport
from antiphon.conformance.link import STARTING, Answer, Link, NotSeen
from antiphon.conformance.recording import RecordedFrame, Role
from antiphon.conformance.scenario import Decisions


class ClientCase:
    """Starts the client. `decide` takes the checks; `version` is the one that is judged."""

    def __init__(
        self, command: Sequence[str], decide: Decisions, *, version: int, manner: Manner, timeout: float
    ) -> None:
        self.decide = decide
        self.version = version
        self.manner = manner
        self.links: list[Link] = []
        self._command = command
        self._timeout = timeout
        self._runs: list[ClientRun] = []

    async def open(self, answers: Mapping[str, Answer | None] = {}) -> PlayedAgent:
        """Start the client and wait for its `initialize`. Raises `NotSeen`.

        `answers` replaces what the agent answers to a method; `None` leaves its requests open.
        """
        run = await ClientRun.start(self._command)
        self._runs.append(run)
        transport = await _connection(run, self._timeout * STARTING)
        name = f"agent {len(self.links) + 1}"
        link = Link(transport, role=Role.AGENT, timeout=self._timeout, name=name)
        self.links.append(link)
        agent = PlayedAgent(
            run, link, version=self.version, manner=self.manner, timeout=self._timeout, answers=answers
        )
        await agent.initialize()
        return agent

    async def open_prompt(self) -> tuple[PlayedAgent, RecordedFrame]:
        """Start the client and wait for its prompt. Raises `NotSeen`."""
        agent = await self.open()
        return agent, await agent.prompt()

    async def begin_turn(self) -> tuple[PlayedAgent, RecordedFrame]:
        """Start the client, wait for its prompt and begin the turn. Raises `NotSeen`."""
        agent, prompt = await self.open_prompt()
        agent.accept(prompt)
        return agent, prompt

    async def aclose(self) -> None:
        for link in self.links:
            await link.aclose()
        for run in self._runs:
            await run.aclose()


async def _connection(run: ClientRun, timeout: float) -> SocketTransport:
    """Wait until the client has started the agent."""
    started = asyncio.ensure_future(run.connections.get())
    exited = asyncio.ensure_future(run.program.exited.wait())
    try:
        await asyncio.wait((started, exited), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if started.done():
            return started.result()
        if exited.done():
            words = run.program.last_words
            raise NotSeen(f"the client ended without starting the agent{f': {words}' if words else ''}")
        raise NotSeen(f"the client did not start the agent within {timeout:g} s")
    finally:
        for task in (started, exited):
            task.cancel()
