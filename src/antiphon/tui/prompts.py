"""Prompts to a session: sent at once, queued, or used to steer or interrupt a turn."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

from antiphon.client import ClientSession
from antiphon.engine import TurnState
from antiphon.schema import v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.prompts import QueueEntry
from antiphon.schema.antiphon.readers import read_update
from antiphon.tui.pending_prompts import PendingPrompt, PendingPrompts
from antiphon.tui.text.plain import plain_line


@dataclass(frozen=True)
class QueuedEntry:
    """A queued prompt."""

    id: str
    text: str
    sender: str = ""
    """The name of the client that sent it, "" for this client."""
    pending: str = ""
    """Why the agent does not have it yet, "" for a prompt in its queue."""


class AgentQueue:
    """A queue that the agent or hub keeps. All clients see it, and it outlives this terminal."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    @property
    def entries(self) -> list[QueuedEntry]:
        read = [read_update(QueueEntry, entry) for entry in self._session.queue.entries]
        return [
            QueuedEntry(entry.message_id, _text(entry.content), self._sender(entry.sender))
            for entry in read
            if entry is not None
        ]

    def _sender(self, sender: Who | None) -> str:
        mine = sender is None or sender.client_id == self._session.client.who.client_id
        return "" if mine or sender is None else plain_line(sender.name, limit=40)

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


TOO_LATE = "The agent already has this prompt, so it was not changed."


class PromptSender:
    """Sends prompts. Methods return a message for the user, or `None`."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._local = None if session.queue.available else LocalQueue()
        self._queue = self._local or AgentQueue(session)
        self.pending = PendingPrompts(
            session.client.link, self._send, idle=lambda: session.state is TurnState.IDLE
        )
        self.paused = False
        """Whether the queue waits until a client resumes it."""

    @property
    def entries(self) -> list[QueuedEntry]:
        """The queued prompts, then those that the agent has not confirmed."""
        pending = (QueuedEntry(each.id, each.text, pending=_why(each)) for each in self.pending.shown)
        return [*self._queue.entries, *pending]

    @property
    def queued(self) -> int:
        return len(self._queue.entries)

    async def send(self, text: str, delivery: str) -> str | None:
        """Send a prompt once the link is there."""
        return await self.pending.deliver(text, delivery)

    async def _send(self, text: str, delivery: str) -> str | None:
        session = self._session
        if session.state is TurnState.IDLE:
            await session.prompt(text)
            return None
        if delivery == "queue" and session.abilities.ours.busy == "agent":
            delivery = "agent"  # the agent decides when it accepts the prompt
        if delivery in ("steer", "interrupt", "agent") and delivery in session.abilities.delivery:
            await session.prompt(text, delivery=delivery)
            return None
        await self._queue.add(text)
        if delivery == "interrupt":
            if self._local is not None:
                await self._local.move(self._local.entries[-1].id, -len(self._local.entries))
            await session.cancel()
            await self.resume()
            return None
        return "This agent cannot be steered, so the prompt was queued." if delivery == "steer" else None

    async def send_next(self) -> None:
        """Send the next prompt of a local queue, because the session is idle."""
        text = None if self._local is None else self._local.take()
        if text is not None:
            await self._session.prompt(text)

    async def edit(self, id: str, text: str) -> str | None:
        pending = self.pending.find(id)
        if pending is not None:
            if pending.sending is not None:
                return TOO_LATE
            pending.text = text
            return None
        if all(entry.id != id for entry in self._queue.entries):
            return TOO_LATE
        await self._queue.edit(id, text)
        return None

    async def move(self, id: str, by: int) -> None:
        if self.pending.find(id) is not None:
            self.pending.move(id, by)
        else:
            await self._queue.move(id, by)

    async def withdraw(self, id: str) -> None:
        if not self.pending.withdraw(id):
            await self._queue.withdraw(id)

    async def resume(self) -> None:
        if self._local is None:
            await self._session.queue.resume()


def _why(pending: PendingPrompt) -> str:
    return "not sent yet" if pending.sending is None else "not confirmed yet"
