"""AgentCase: what a scenario for agents is handed."""

from __future__ import annotations

from random import Random
from typing import Any

from antiphon.conformance.agent.conversation import Conversation, initialize_params
from antiphon.conformance.agent.shared import SharedConnection
from antiphon.conformance.link import Link, NotSeen
from antiphon.conformance.prompts import Prompts
from antiphon.conformance.recording import RecordedFrame, Role
from antiphon.conformance.rules.rule import agreed_version
from antiphon.conformance.scenario import Decisions
from antiphon.conformance.targets import Target


class AgentCase:
    """Opens connections to the agent. `decide` takes the checks; `version` is the one that is judged."""

    def __init__(
        self,
        target: Target,
        decide: Decisions,
        *,
        version: int,
        cwd: str,
        prompts: Prompts,
        timeout: float,
        random: Random,
        shared: SharedConnection | None = None,
    ) -> None:
        self.target = target
        self.decide = decide
        self.version = version
        self.cwd = cwd
        """An existing empty folder, which the scenario has to itself."""
        self.prompts = prompts
        self.random = random
        self._timeout = timeout
        self._shared = shared
        self._borrowed: Conversation | None = None
        """The conversation on the shared connection, once the scenario has it."""
        self.links: list[Link] = []

    async def link(self) -> Link:
        """Open a connection and send nothing."""
        name = f"client {len(self.links) + 1}"
        link = Link(await self.target.open(), role=Role.CLIENT, timeout=self._timeout, name=name)
        self.links.append(link)
        return link

    async def open(self, *, version: int = 0, **capabilities: Any) -> Conversation:
        """Return an initialized connection for a client with the given capabilities.

        The first one without any may be one that an earlier scenario has used. Raises `NotSeen` if the agent
        does not agree on the version.
        """
        borrows = self._shared is not None and self._borrowed is None and not version and not capabilities
        if borrows:
            assert self._shared is not None
            self._borrowed = self._shared.take(self.cwd)
            if self._borrowed is not None:
                self.links.append(self._borrowed.link)
                return self._borrowed
        opened = await self._open(version, capabilities)
        if borrows:
            self._borrowed = opened
        return opened

    async def _open(self, version: int, capabilities: dict[str, Any]) -> Conversation:
        link = await self.link()
        asked = version or self.version
        result = await link.call("initialize", initialize_params(asked, capabilities))
        if not isinstance(result, dict) or agreed_version(result) != asked:
            raise NotSeen(f"the agent did not agree on version {asked}")
        return Conversation(link, result, cwd=self.cwd)

    async def open_session(self) -> tuple[Conversation, str]:
        """Return an initialized connection and the id of a new session on it. Raises `NotSeen`."""
        agent = await self.open()
        return agent, await agent.new_session()

    async def answered(self, requirement: str, link: Link, request: RecordedFrame) -> RecordedFrame:
        """Return the response to a request. A missing one breaks the requirement and raises `NotSeen`."""
        try:
            return await link.response(request)
        except NotSeen as missing:
            self.decide.check(
                requirement, False, f"expected a response to `{request.method}`; {missing}",
                request, *link.since(request),
            )  # fmt: skip
            raise

    async def aclose(self) -> None:
        borrowed = self._borrowed
        for link in self.links:
            if borrowed is None or link is not borrowed.link:
                await link.aclose()
        if borrowed is not None and self._shared is not None:
            await self._shared.put_back(borrowed.link, borrowed.initialized)
