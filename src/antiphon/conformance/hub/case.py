"""HubCase: what a scenario for hubs is handed."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from antiphon.conformance.agent.conversation import Conversation, initialize_params
from antiphon.conformance.faults import WebSocketProxy
from antiphon.conformance.hub.place import Place, StartedHub
from antiphon.conformance.hub.turn import PlayedTurn, PromptedTurn, Turn
from antiphon.conformance.hub.upstream import AgentSession
from antiphon.conformance.link import Link, NotSeen, Refused, why_unseen
from antiphon.conformance.prompts import Prompts
from antiphon.conformance.recording import RecordedFrame, Role, same_id
from antiphon.conformance.rules.rule import agreed_version
from antiphon.conformance.scenario import Decisions

ALONE = "the judge plays the agent only behind a hub that it starts: give its command after --, with {agent}"

CANCEL_SECONDS = 5.0
"""How long a hub may take to read the cancels at the end of a scenario."""


class HubCase:
    """Connects clients to the hub. `decide` takes the checks; `version` is the one that is judged.

    If the judge plays the agent, it speaks the same version. `other` is the version of the clients that make
    a session mixed.
    """

    def __init__(
        self,
        place: Place,
        decide: Decisions,
        *,
        version: int,
        folder: str,
        prompts: Prompts,
        timeout: float,
        other_token: str = "",
    ) -> None:
        self.place = place
        self.decide = decide
        self.version = version
        self.other = 3 - version
        self.cwd = tempfile.mkdtemp(dir=folder)
        """An existing empty folder, which the scenario has to itself."""
        self.prompts = prompts
        self.timeout = timeout
        self.other_token = other_token
        """A token for other sessions than those of the judge."""
        self.links: list[Link] = []
        self._proxies: list[WebSocketProxy] = []
        self._hubs: list[StartedHub] = []
        self._begun: list[tuple[Conversation, str]] = []
        """Clients with the sessions in which they began a turn of an agent that is not played."""

    # --- clients -----------------------------------------------------------------------------------

    async def client(
        self,
        *,
        version: int = 0,
        at: str = "",
        place: Place | None = None,
        token: str | None = None,
        capabilities: dict[str, Any] | None = None,
    ) -> Conversation:
        """Connect a client and initialize it. Its permission requests are left to the scenario.

        Raises `NotSeen` if the hub does not agree on the version.
        """
        name = f"client {len(self.links) + 1}"
        transport = await (place or self.place).open(at=at, token=token)
        link = Link(transport, role=Role.CLIENT, timeout=self.timeout, name=name)
        self.links.append(link)
        asked = version or self.version
        result = await link.call("initialize", initialize_params(asked, capabilities or {}))
        if not isinstance(result, dict) or agreed_version(result) != asked:
            raise NotSeen(f"the hub did not agree on version {asked}")
        client = Conversation(link, result, cwd=self.cwd)
        link.on_request("session/request_permission", None)
        return client

    async def proxied_client(self) -> tuple[Conversation, WebSocketProxy]:
        """Connect a client through a proxy that can do faults. Raises `NotSeen`."""
        if not self.place.address.startswith("ws://"):
            raise NotSeen("faults are injected only into ws:// connections")
        proxy = await WebSocketProxy.listen(self.place.address)
        self._proxies.append(proxy)
        return await self.client(at=proxy.address), proxy

    async def attach(self, client: Conversation, session: str) -> RecordedFrame:
        """Load the whole session into a client, and return the response. Raises `NotSeen`."""
        if client.version == 1:
            self.decide.need(client.offers("loadSession"), "the hub does not offer `session/load`")
        request = client.load(session)
        response = await client.link.response(request)
        if response.error_code is not None:
            raise Refused(request, response)
        return response

    async def shared_session(self, *versions: int) -> tuple[str, list[Conversation]]:
        """Make a session that clients of these versions are attached to. The first one made it."""
        clients = [await self.client(version=version) for version in versions]
        session = await clients[0].new_session()
        for client in clients[1:]:
            await self.attach(client, session)
        return session, clients

    # --- the agent ---------------------------------------------------------------------------------

    async def played(self, client: Conversation, place: Place | None = None) -> AgentSession:
        """Return the newest session of a client at the agent that the judge plays. Raises `NotSeen`."""
        upstream = (place or self.place).upstream
        if upstream is None:
            raise NotSeen(ALONE)
        return await upstream.session(client.cwd)

    async def begin(
        self, client: Conversation, session: str, words: str = "", *, lasts: bool = False
    ) -> Turn:
        """Prompt, and wait until the agent works. `words` is the prompt for an agent that is not played."""
        if self.place.upstream is not None:
            return await self.begin_played(client, session)
        self.decide.need(bool(words), ALONE)
        prompt = client.prompt(session, words)
        self._begun.append((client, session))
        turn = PromptedTurn(client, session, prompt, lasts=lasts)
        if client.version == 2:
            response = await client.link.response(prompt)
            if response.error_code is not None:
                raise Refused(prompt, response)
        return turn

    async def begin_played(
        self, client: Conversation, session: str, place: Place | None = None, **params: Any
    ) -> PlayedTurn:
        """Prompt, and begin the turn as the played agent. Raises `NotSeen`."""
        agent = await self.played(client, place)
        frames = agent.link.recording.frames
        last = frames[-1] if frames else None
        prompt = client.prompt(session, "The judge plays the agent.", **params)
        received = await _arrival(client, prompt, agent, last)
        agent.accept(received)
        return PlayedTurn(client, agent, prompt, received)

    async def another_hub(self) -> StartedHub:
        """Start a hub for this scenario alone. Raises `NotSeen`."""
        hub = await self.place.start_another()
        self._hubs.append(hub)
        return hub

    # --- waiting -----------------------------------------------------------------------------------

    async def until(self, client: Conversation, condition: Callable[[], bool]) -> bool:
        """Wait until something is true of what a client received. Return whether it became true in time."""
        if condition():
            return True
        last = client.link.recording.frames[-1]
        return not await why_unseen(
            client.link.wait(lambda frame: condition(), "what the scenario waits for", after=last)
        )

    async def settled(self, client: Conversation, turn: Turn, condition: Callable[[], bool]) -> None:
        """Wait until a client has everything of a turn that has ended, or should have it.

        A played agent has a last word, and what a client gets later would be late. Otherwise the judge waits
        until the condition is true. What is missing is left to the checks.
        """
        if not isinstance(turn, PlayedTurn):
            await self.until(client, condition)
            return
        last = turn.words[-1].encode()
        with suppress(NotSeen):
            await client.link.wait(lambda frame: last in frame.raw, "the last chunk of the agent")
            await client.link.barrier()

    async def aclose(self) -> None:
        for client, session in self._begun:  # an agent that goes on would keep the hub from ending
            with suppress(NotSeen):
                client.cancel(session)
                await client.link.barrier(timeout=CANCEL_SECONDS)
        for link in self.links:
            await link.aclose()
        for proxy in self._proxies:
            await proxy.aclose()
        for hub in self._hubs:
            await hub.aclose()


async def _arrival(
    client: Conversation, prompt: RecordedFrame, agent: AgentSession, after: RecordedFrame | None
) -> RecordedFrame:
    """Wait until a prompt has reached the agent. Raises `Refused` if the hub refuses it, or `NotSeen`."""

    def is_refusal(frame: RecordedFrame) -> bool:
        return frame.error_code is not None and same_id(frame.id, prompt.id)

    arrived = asyncio.ensure_future(agent.prompt(after=after))
    refused = asyncio.ensure_future(client.link.wait(is_refusal, "an answer to the prompt", after=prompt))
    try:
        await asyncio.wait((arrived, refused), return_when=asyncio.FIRST_COMPLETED)
        if not arrived.done() and refused.exception() is None:
            raise Refused(prompt, refused.result())
        return await arrived
    finally:
        for task in (arrived, refused):
            task.cancel()
        await asyncio.gather(arrived, refused, return_exceptions=True)
