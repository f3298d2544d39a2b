"""What is sent to a session: prompts at once, behind what it works on, into it, or instead of it."""

from __future__ import annotations

from antiphon.client import ClientSession
from antiphon.engine import TurnState
from antiphon.tui.waiting import Here, Waits, waiting_of


class Sending:
    """What a method returns is to be told; it raises what goes wrong."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._waiting = waiting_of(session)
        self.paused = False
        """Whether the queue waits for somebody to go on with it."""

    @property
    def entries(self) -> list[Waits]:
        return self._waiting.entries

    async def send(self, text: str, delivery: str) -> str | None:
        session = self._session
        if session.state is TurnState.IDLE:
            await session.prompt(text)
            return None
        if delivery == "queue" and session.abilities.ours.get("busy") == "agent":
            delivery = "agent"  # the hub leaves it to the agent when a prompt is taken
        if delivery in ("steer", "interrupt", "agent") and delivery in session.abilities.delivery:
            await session.prompt(text, delivery=delivery)
            return None
        await self._waiting.add(text)
        if delivery == "interrupt":
            if isinstance(self._waiting, Here):
                await self._waiting.move(self.entries[-1].id, -len(self.entries))
            await session.cancel()
            if not isinstance(self._waiting, Here):
                await session.resume_queue()
            return None
        return "This agent cannot be steered: it waits for its turn." if delivery == "steer" else None

    async def rested(self) -> str | None:
        """The session is ready: what waits here is sent."""
        next_one = self._waiting.take() if isinstance(self._waiting, Here) else None
        if next_one is not None:
            await self._session.prompt(next_one)
        return None

    async def edit(self, id: str, text: str) -> str | None:
        if all(entry.id != id for entry in self.entries):
            return "It was taken meanwhile; nothing was changed."
        await self._waiting.edit(id, text)
        return None

    async def move(self, id: str, by: int) -> str | None:
        await self._waiting.move(id, by)
        return None

    async def withdraw(self, id: str) -> str | None:
        await self._waiting.withdraw(id)
        return None

    async def resume(self) -> str | None:
        if not isinstance(self._waiting, Here):
            await self._session.resume_queue()
        return None

    async def cancel(self) -> str | None:
        await self._session.cancel()
        return None
