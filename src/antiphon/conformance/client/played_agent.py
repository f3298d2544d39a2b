"""PlayedAgent: the judge as the agent on one connection of the client, in either version."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from antiphon.conformance.client.run import ClientRun
from antiphon.conformance.link import Answer, Link, NotSeen
from antiphon.conformance.recording import RecordedFrame

SESSION = "judge-session"
USER_MESSAGE = "judge-user-message"
MESSAGE = "judge-message"
INFO = {"name": "antiphon-judge", "version": "1"}


class AsksForLess(NotSeen):
    """The client asked for an older version than the one that is judged."""


class Manner(Struct, frozen=True):
    """What the client does in a plain turn. Scenarios judge nothing that it does not do there."""

    prompts: bool
    """It makes a session and sends a prompt by itself."""
    prints: bool
    """It prints the text of the agent's messages to stdout."""
    exits: bool
    """It ends by itself after the turn."""
    exit_code: int | None = None
    seconds: float = 0.0
    """How long the turn took, with the start of the client."""


def text(words: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": words}


def say(words: str, message: str = MESSAGE) -> dict[str, Any]:
    """Return an update: one chunk of an agent message."""
    return {"sessionUpdate": "agent_message_chunk", "messageId": message, "content": text(words)}


def state(name: str, **fields: Any) -> dict[str, Any]:
    """Return a state update of v2."""
    return {"sessionUpdate": "state_update", "state": name, **fields}


def plain_initialize_result(version: int) -> dict[str, Any]:
    """Return the answer of an agent that offers nothing but what each agent must."""
    if version == 2:
        return {"protocolVersion": 2, "info": INFO, "capabilities": {"session": {}}}
    return {"protocolVersion": version, "agentInfo": INFO, "agentCapabilities": {}, "authMethods": []}


def constant(result: Any) -> Answer:
    """Return an answer to requests that is always the same."""
    return lambda link, request: link.answer(request, result)


class PlayedAgent:
    """Answers `initialize` and `session/new` by itself; the prompt is left to the scenario.

    `answers` replaces what the agent answers to a method; `None` leaves its requests open.
    """

    def __init__(
        self,
        run: ClientRun,
        link: Link,
        *,
        version: int,
        manner: Manner,
        timeout: float,
        answers: Mapping[str, Answer | None],
    ) -> None:
        self.run = run
        self.link = link
        self.version = version
        self._manner = manner
        self._timeout = timeout
        defaults: dict[str, Answer | None] = {
            "initialize": constant(plain_initialize_result(version)),
            "session/new": constant({"sessionId": SESSION}),
            "session/prompt": None,
        }
        if version == 2:
            defaults["session/list"] = constant({"sessions": []})
            defaults["session/close"] = constant({})
            defaults["session/resume"] = Link.refuse_session
        for method, answer in {**defaults, **answers}.items():
            link.on_request(method, answer)

    # --- what the client asks for ------------------------------------------------------------------

    async def initialize(self) -> RecordedFrame:
        """Wait for the client's `initialize`. Raises `NotSeen`, `AsksForLess`."""
        request = await self.link.wait(lambda frame: frame.method == "initialize", "`initialize`")
        asked = request.get("params", "protocolVersion")
        if isinstance(asked, int) and asked < self.version:
            raise AsksForLess(f"the client asked for version {asked}")
        return request

    async def asked(self, method: str) -> RecordedFrame:
        """Wait for a request of the client."""
        if not self._manner.prompts:
            raise NotSeen("the client sends no prompt by itself")
        return await self.link.wait(lambda frame: frame.method == method and frame.is_request, f"`{method}`")

    async def prompt(self) -> RecordedFrame:
        """Wait for the client's prompt."""
        return await self.asked("session/prompt")

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """What the client advertised."""
        key = "capabilities" if self.version == 2 else "clientCapabilities"
        for frame in self.link.recording.frames:
            if frame.method == "initialize":
                found = frame.get("params", key)
                return found if isinstance(found, dict) else {}
        return {}

    # --- what the agent says -----------------------------------------------------------------------

    def update(self, update: dict[str, Any]) -> RecordedFrame:
        return self.link.notify("session/update", {"sessionId": SESSION, "update": update})

    def say(self, words: str, message: str = MESSAGE) -> RecordedFrame:
        """Send one chunk of an agent message."""
        return self.update(say(words, message))

    def accept(self, prompt: RecordedFrame) -> None:
        """Begin the turn. In v2 that is the answer to the prompt, its message and the running state."""
        if self.version == 2:
            self.link.answer(prompt, {"messageId": USER_MESSAGE})
            self.echo(prompt)
            self.update(state("running"))

    def echo(self, prompt: RecordedFrame) -> RecordedFrame:
        """Send the user's message back, as an agent of v2 does."""
        content = prompt.get("params", "prompt")
        return self.update({"sessionUpdate": "user_message", "messageId": USER_MESSAGE, "content": content})

    def finish(self, prompt: RecordedFrame, reason: str = "end_turn") -> RecordedFrame:
        """End the turn, and return the frame that ends it."""
        if self.version == 2:
            return self.update(state("idle", stopReason=reason))
        return self.link.answer(prompt, {"stopReason": reason})

    async def complete(self, prompt: RecordedFrame) -> None:
        """End the turn, and wait for the end of the client's program."""
        self.finish(prompt)
        await self.ended()

    # --- how the client ends -----------------------------------------------------------------------

    async def ended(self, *, timeout: float = 0) -> bool:
        """Wait for the end of the client's program. Return `False` if it did not end within the timeout.

        A client that does not end in a plain turn is not waited for. Raises `NotSeen` if the client starts
        the agent again.
        """
        if not self._manner.exits:
            return False
        exited = asyncio.ensure_future(self.run.program.exited.wait())
        again = asyncio.ensure_future(self.run.connections.get())
        try:
            done, _ = await asyncio.wait(
                (exited, again), timeout=timeout or self._timeout, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            exited.cancel()
            again.cancel()
        if again in done:
            await again.result().aclose()
        if again in done and exited not in done:
            raise NotSeen("the client started the agent again")
        return exited in done

    async def output(self) -> str:
        """Wait for the end of the client's program and return all that it printed to stdout.

        Raises `NotSeen` for a client that prints no text of agents, or does not end by itself.
        """
        if not self._manner.prints:
            raise NotSeen("the client does not print the text of the agent to stdout")
        if not self._manner.exits:
            raise NotSeen("the client does not end after its turn, so its output is never complete")
        if not await self.ended():
            raise NotSeen(f"the client did not end within {self._timeout:g} s after its turn")
        return self.run.program.printed
