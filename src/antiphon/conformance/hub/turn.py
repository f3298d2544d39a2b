"""Turns: how a scenario makes the agent behind a hub work.

If the judge plays the agent, it says what a scenario needs. Otherwise a prompt makes a real agent work.
"""

from __future__ import annotations

from itertools import count
from typing import Protocol

from antiphon.conformance.agent.conversation import Conversation, is_content
from antiphon.conformance.hub.upstream import AgentSession
from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame

MESSAGE = "judge-message"
_numbers = count(1)


class Turn(Protocol):
    """The work for one prompt."""

    @property
    def prompt(self) -> RecordedFrame:
        """The request of the client that prompted."""

    async def say(self) -> None:
        """Make the agent say more, and wait until the client that prompted has it. Raises `NotSeen`."""

    async def ask(self) -> None:
        """Make the agent ask for permission."""

    async def end(self) -> None:
        """End the turn, and wait until the client that prompted knows it. Raises `NotSeen`."""


class PlayedTurn:
    """A turn of an agent that the judge plays. Each chunk is a word of its own."""

    def __init__(
        self, client: Conversation, agent: AgentSession, prompt: RecordedFrame, received: RecordedFrame
    ) -> None:
        self.client = client
        self.agent = agent
        self.prompt = prompt
        self.received = received
        """The prompt as it reached the agent."""
        self.message = f"{MESSAGE}-{next(_numbers)}"
        self.words: list[str] = []
        self.question: RecordedFrame | None = None

    def say_now(self, **fields: object) -> str:
        """Send one chunk, and return its word."""
        word = f"word-{next(_numbers)}"
        self.words.append(word)
        self.agent.say(f"{word} ", self.message, **fields)
        return word

    async def say(self) -> None:
        word = self.say_now()
        await self.client.link.wait(lambda frame: word.encode() in frame.raw, "a chunk of the agent")

    async def ask(self) -> None:
        self.question = self.agent.ask()

    async def end(self) -> None:
        if self.question is not None:
            await self.agent.answer(self.question)
            self.question = None
            await self.say()
        self.agent.finish(self.received)
        await self.client.turn_end(self.prompt)


class PromptedTurn:
    """A turn of an agent that the judge only prompts. `lasts` until it is cancelled."""

    def __init__(self, client: Conversation, session: str, prompt: RecordedFrame, *, lasts: bool) -> None:
        self.client = client
        self.session = session
        self.prompt = prompt
        self._lasts = lasts
        self._last = prompt

    async def say(self) -> None:
        if self._lasts:
            self._last = await self.client.update(
                self.session, is_content, "an update of the agent", after=self._last
            )

    async def ask(self) -> None:
        """The prompt asks for it."""

    async def end(self) -> None:
        if self._lasts:
            if self.client.link.recording.response_to(self.prompt) is not None and self.client.version == 1:
                raise NotSeen("the turn ended by itself too early: `--prompt slow=TEXT` names a longer one")
            self.client.cancel(self.session)
        await self.client.turn_end(self.prompt)
