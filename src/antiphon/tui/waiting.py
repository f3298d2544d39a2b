"""Prompts that wait while the session works: at the agent where it has a queue, otherwise here."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from antiphon.client import ClientSession
from antiphon.schema import v2
from antiphon.tui.plain import plain_line


@dataclass(frozen=True)
class Waits:
    """One of them."""

    id: str
    text: str
    sender: str = ""
    """Whose it is, if that is somebody else."""


class Waiting(Protocol):
    @property
    def entries(self) -> list[Waits]: ...

    async def add(self, text: str) -> None: ...

    async def edit(self, id: str, text: str) -> None: ...

    async def move(self, id: str, by: int) -> None: ...

    async def withdraw(self, id: str) -> None: ...


def waiting_of(session: ClientSession) -> Waiting:
    able = session.can_queue
    return AtAgent(session) if able else Here()


class AtAgent:
    """They outlive this terminal, and every client of the session sees them."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    @property
    def entries(self) -> list[Waits]:
        found = []
        for entry in self._session.queue_entries:
            if isinstance(entry, dict) and isinstance(entry.get("messageId"), str):
                found.append(Waits(entry["messageId"], _text(entry.get("content")), self._sender(entry)))
        return found

    def _sender(self, entry: dict[str, Any]) -> str:
        sender = entry.get("sender")
        if not isinstance(sender, dict) or sender.get("clientId") == self._session.client.who.client_id:
            return ""
        return plain_line(str(sender.get("name", "")), limit=40)

    async def add(self, text: str) -> None:
        await self._session.queue(text)

    async def edit(self, id: str, text: str) -> None:
        content = [v2.TextContent(text=text)]
        await self._session.call_antiphon("replace_inject", messageId=id, content=content)

    async def move(self, id: str, by: int) -> None:
        ids = [entry.id for entry in self.entries]
        if id not in ids:
            return
        to = ids.index(id) + by
        if 0 <= to < len(ids):
            behind = ids[to] if by < 0 else ids[to + 1] if to + 1 < len(ids) else None
            before = {} if behind is None else {"before": behind}
            await self._session.call_antiphon("move_inject", messageId=id, **before)

    async def withdraw(self, id: str) -> None:
        await self._session.call_antiphon("revoke_inject", messageId=id)


class Here:
    """They wait in this terminal, and are lost with it."""

    def __init__(self) -> None:
        self._entries: list[Waits] = []
        self._ids = count(1)

    @property
    def entries(self) -> list[Waits]:
        return list(self._entries)

    def _at(self, id: str) -> int:
        return next(at for at, entry in enumerate(self._entries) if entry.id == id)

    def take(self) -> str | None:
        """The next one, which is about to be sent."""
        return self._entries.pop(0).text if self._entries else None

    async def add(self, text: str) -> None:
        self._entries.append(Waits(f"here-{next(self._ids)}", text))

    async def edit(self, id: str, text: str) -> None:
        self._entries[self._at(id)] = Waits(id, text)

    async def move(self, id: str, by: int) -> None:
        at = self._at(id)
        to = max(0, min(at + by, len(self._entries) - 1))
        self._entries.insert(to, self._entries.pop(at))

    async def withdraw(self, id: str) -> None:
        del self._entries[self._at(id)]


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else []
    return "".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
