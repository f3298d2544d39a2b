"""Prompts to a session: sent at once, queued, or used to steer or interrupt a turn."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from antiphon.client import ClientSession
from antiphon.engine import TurnState
from antiphon.schema import v2
from antiphon.tui.text.plain import plain_line


@dataclass(frozen=True)
class QueuedEntry:
    """A queued prompt."""

    id: str
    text: str
    sender: str = ""
    """The name of the client that sent it, "" for this client."""


class PromptQueue(Protocol):
    @property
    def entries(self) -> list[QueuedEntry]: ...

    async def add(self, text: str) -> None: ...

    async def edit(self, id: str, text: str) -> None: ...

    async def move(self, id: str, by: int) -> None: ...

    async def withdraw(self, id: str) -> None: ...


def queue_of(session: ClientSession) -> PromptQueue:
    able = session.queue.available
    return AgentQueue(session) if able else LocalQueue()


class AgentQueue:
    """A queue that the agent or hub keeps. All clients see it, and it outlives this terminal."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    @property
    def entries(self) -> list[QueuedEntry]:
        found = []
        for entry in self._session.queue.entries:
            if isinstance(entry, dict) and isinstance(entry.get("messageId"), str):
                found.append(
                    QueuedEntry(entry["messageId"], _text(entry.get("content")), self._sender(entry))
                )
        return found

    def _sender(self, entry: dict[str, Any]) -> str:
        sender = entry.get("sender")
        if not isinstance(sender, dict) or sender.get("clientId") == self._session.client.who.client_id:
            return ""
        return plain_line(str(sender.get("name", "")), limit=40)

    async def add(self, text: str) -> None:
        await self._session.queue.add(text)

    async def edit(self, id: str, text: str) -> None:
        content = [v2.TextContent(text=text)]
        await self._session.call_antiphon("replace_inject", message_id=id, content=content)

    async def move(self, id: str, by: int) -> None:
        ids = [entry.id for entry in self.entries]
        if id not in ids:
            return
        to = ids.index(id) + by
        if 0 <= to < len(ids):
            behind = ids[to] if by < 0 else ids[to + 1] if to + 1 < len(ids) else None
            await self._session.call_antiphon("move_inject", message_id=id, before=behind)

    async def withdraw(self, id: str) -> None:
        await self._session.call_antiphon("revoke_inject", message_id=id)


class LocalQueue:
    """A queue in this terminal. It is lost when the terminal closes."""

    def __init__(self) -> None:
        self._entries: list[QueuedEntry] = []
        self._ids = count(1)

    @property
    def entries(self) -> list[QueuedEntry]:
        return list(self._entries)

    def _at(self, id: str) -> int:
        return next(at for at, entry in enumerate(self._entries) if entry.id == id)

    def take(self) -> str | None:
        """Remove and return the next prompt."""
        return self._entries.pop(0).text if self._entries else None

    async def add(self, text: str) -> None:
        self._entries.append(QueuedEntry(f"here-{next(self._ids)}", text))

    async def edit(self, id: str, text: str) -> None:
        self._entries[self._at(id)] = QueuedEntry(id, text)

    async def move(self, id: str, by: int) -> None:
        at = self._at(id)
        to = max(0, min(at + by, len(self._entries) - 1))
        self._entries.insert(to, self._entries.pop(at))

    async def withdraw(self, id: str) -> None:
        del self._entries[self._at(id)]


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else []
    return "".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))


class PromptSender:
    """Sends prompts. Methods return a message for the user, or `None`."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._waiting = queue_of(session)
        self.paused = False
        """Whether the queue waits until a client resumes it."""

    @property
    def entries(self) -> list[QueuedEntry]:
        return self._waiting.entries

    async def send(self, text: str, delivery: str) -> str | None:
        session = self._session
        if session.state is TurnState.IDLE:
            await session.prompt(text)
            return None
        if delivery == "queue" and session.abilities.ours.busy == "agent":
            delivery = "agent"  # the agent decides when it accepts the prompt
        if delivery in ("steer", "interrupt", "agent") and delivery in session.abilities.delivery:
            await session.prompt(text, delivery=delivery)
            return None
        await self._waiting.add(text)
        if delivery == "interrupt":
            if isinstance(self._waiting, LocalQueue):
                await self._waiting.move(self.entries[-1].id, -len(self.entries))
            await session.cancel()
            if not isinstance(self._waiting, LocalQueue):
                await session.queue.resume()
            return None
        return "This agent cannot be steered, so the prompt was queued." if delivery == "steer" else None

    async def send_next(self) -> str | None:
        """Send the next prompt of a local queue, because the session is idle."""
        next_one = self._waiting.take() if isinstance(self._waiting, LocalQueue) else None
        if next_one is not None:
            await self._session.prompt(next_one)
        return None

    async def edit(self, id: str, text: str) -> str | None:
        if all(entry.id != id for entry in self.entries):
            return "The agent already has this prompt, so it was not changed."
        await self._waiting.edit(id, text)
        return None

    async def move(self, id: str, by: int) -> str | None:
        await self._waiting.move(id, by)
        return None

    async def withdraw(self, id: str) -> str | None:
        await self._waiting.withdraw(id)
        return None

    async def resume(self) -> str | None:
        if not isinstance(self._waiting, LocalQueue):
            await self._session.queue.resume()
        return None

    async def cancel(self) -> str | None:
        await self._session.cancel()
        return None
