"""An agent made with the agent library: the first word of a prompt says what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from antiphon.agent import Agent, AgentSession, AgentTurn, ToolCallWriter
from antiphon.schema import v2

PLAN = [
    ("Find the mistakes", "high"),
    ("Look at the types", "medium"),
    ("Propose changes", "low"),
]
"""The entries that `work` plans, with their priorities."""


class SeedAgent:
    """`go` lets what holds go on; `prompts` are the texts of the prompts that reached the handler."""

    def __init__(self, *, busy: str = "queue", accepts: Sequence[str] = ()) -> None:
        self.agent = Agent("seeds", version="1", busy=busy, accepts=accepts)
        self.agent.on_prompt(self.answer)
        self.go = asyncio.Event()
        self.prompts: list[str] = []
        self.taken: list[list[v2.ContentBlock]] = []

    async def answer(self, turn: AgentTurn) -> str | None:
        self.prompts.append(turn.prompt.text)
        self.taken.append(list(turn.prompt.content))
        word, _, rest = turn.prompt.text.partition(" ")
        does: dict[str, Callable[[AgentTurn, str], Awaitable[str | None]]] = {
            "hold": self._hold,
            "tool": self._tool,
            "work": self._work,
            "ask": self._ask,
            "stop": self._stop,
            "fail": self._fail,
            "two": self._two,
            "whole": self._whole,
            "behind": self._behind,
            "wake": self._wake,
            "rouse": self._rouse,
            "usage": self._usage,
        }
        return await does.get(word, self._say)(turn, rest or word)

    async def _say(self, turn: AgentTurn, words: str) -> None:
        async with turn.message() as message:
            await message.write("You said: ")
            await message.write(words)

    async def _hold(self, turn: AgentTurn, words: str) -> None:
        """Wait for `go`, or for a cancel, after which there is still something to say."""
        async with turn.message() as message:
            await message.write("holding")
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                await message.write(", and late words")
                raise
            for prompt in turn.steered():
                self.prompts.append(prompt.text)
                await message.write(f", and {prompt.text}")

    async def _tool(self, turn: AgentTurn, words: str) -> None:
        """A tool call that runs until `go`, and takes in what steers it behind that."""
        async with turn.tool_call("Look") as call:
            await call.write("looking")
            await self.go.wait()
        self.prompts += [prompt.text for prompt in turn.steered()]
        await turn.say("looked")

    async def _work(self, turn: AgentTurn, words: str) -> None:
        """Everything that a turn may have: thought, plan, text, a tool call with permission, more text."""
        async with turn.thought() as thought:
            await thought.write("Let me ")
            await thought.write("think")
        await turn.plan(
            [
                v2.PlanEntry(
                    content=content,
                    priority=v2.PlanEntryPriority(priority),
                    status=v2.PlanEntryStatus.PENDING,
                )
                for content, priority in PLAN
            ]
        )
        async with turn.message() as message:
            await message.write("I will look ")
            await message.write("at it")
        async with turn.tool_call("Analyze", pending=True) as call:
            if await call.request_permission():
                await call.resume()
                await call.write("half ")
                await call.write("done")
        turn.count_tokens(input=2, output=3)
        await turn.say("It is fine.")

    async def _ask(self, turn: AgentTurn, words: str) -> None:
        async with turn.tool_call("Touch", kind="edit") as call:
            allowed = await call.request_permission()
        await turn.say("allowed" if allowed else "refused")

    async def _stop(self, turn: AgentTurn, reason: str) -> str:
        await turn.say("stopping")
        return reason

    async def _fail(self, turn: AgentTurn, words: str) -> None:
        raise RuntimeError("private words")

    async def _two(self, turn: AgentTurn, words: str) -> None:
        """Two messages of one kind, one right behind the other, each in two chunks."""
        for number in ("first", "second"):
            async with turn.message() as message:
                await message.write(f"the {number} ")
                await message.write("message")

    async def _whole(self, turn: AgentTurn, words: str) -> None:
        """A whole message, and one that is streamed and then told whole."""
        await turn.say("at once")
        async with turn.message() as message:
            await message.write("piece ")
            await message.replace("in one piece")

    async def _behind(self, turn: AgentTurn, words: str) -> None:
        """Work that goes on after the turn, until `go`."""

        async def watch(call: ToolCallWriter) -> None:
            await self.go.wait()
            await call.write("built")

        await turn.session.background("Build", watch)
        await turn.say("it builds")

    async def _wake(self, turn: AgentTurn, words: str) -> None:
        """A turn that the agent opens by itself, after `go`."""
        turn.session.soon(self.speak(turn.session))
        await turn.say("until later")

    async def _rouse(self, turn: AgentTurn, words: str) -> None:
        """A turn that the agent opens by itself, after `go`, and that lasts until it is cancelled."""
        turn.session.soon(self._last(turn.session))
        await turn.say("until later")

    async def _last(self, session: AgentSession) -> None:
        await self.go.wait()
        await session.idle()
        async with session.turn() as turn:
            await turn.say("at work by myself")
            await asyncio.Event().wait()
        await session.update(v2.Notice(severity=v2.NoticeSeverity.INFO, title="what opened it goes on"))

    async def speak(self, session: AgentSession) -> None:
        await self.go.wait()
        await session.idle()
        async with session.turn() as turn:
            await turn.say("by myself")

    async def _usage(self, turn: AgentTurn, words: str) -> None:
        turn.count_tokens(input=2, output=3)
        await turn.say("counted")
