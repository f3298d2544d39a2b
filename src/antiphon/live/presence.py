"""Presence: who follows a live session just now. Advisory: it is told, and not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from antiphon.engine.json_values import encode
from antiphon.engine.who import Present, Who

PACE = 0.1
"""Seconds between two tellings: a crowd that comes at once is told of at once."""


class Follower(Protocol):
    """One attachment."""

    @property
    def who(self) -> Who | None: ...

    @property
    def client_version(self) -> str | None: ...

    def show_presence(self) -> None: ...


class Presence:
    """A client that is attached several times is one client, from when it first was."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._since: dict[Follower, int] = {}
        self._listed: list[tuple[str, bytes, bytes]] = []
        """The clients: id, how the others see it, and how it sees itself."""
        self._told_at = 0.0
        self._due: asyncio.TimerHandle | None = None
        self.on_told: Callable[[], None] = lambda: None
        """Called when somebody came or went, as often as that is told."""

    def join(self, follower: Follower) -> None:
        if follower.who is not None and follower not in self._since:
            self._since[follower] = self._clock()
            self._changed()

    def leave(self, follower: Follower) -> None:
        if self._since.pop(follower, None) is not None:
            self._changed()

    def move(self, before: Follower, follower: Follower) -> None:
        """One client's attachment takes the place of another: nobody comes or goes."""
        since = self._since.pop(before, None)
        if since is not None:
            self._since[follower] = since
            self._changed()  # it may have another name now

    def clients(self, *, you: Follower | None = None) -> list[Present]:
        """Those who are there, the first ones first."""
        own = None if you is None or you.who is None else you.who.client_id
        found: dict[str, Present] = {}
        for follower, since in sorted(self._since.items(), key=lambda entry: entry[1]):
            who = follower.who
            assert who is not None
            if who.client_id not in found:
                found[who.client_id] = Present(
                    client_id=who.client_id,
                    name=who.name,
                    version=follower.client_version,
                    joined_at=rfc3339(since),
                    you=who.client_id == own,
                )
        return list(found.values())

    def update(self, who: Who | None) -> bytes:
        """What one of them is told. Encoded once for all: only its own entry is another for each."""
        own = None if who is None else who.client_id
        entries = b",".join(mine if id == own else plain for id, plain, mine in self._listing())
        return b'{"sessionUpdate":"_antiphon_presence","clients":[%b]}' % entries

    def _listing(self) -> list[tuple[str, bytes, bytes]]:
        if not self._listed:
            self._listed = [
                (one.client_id, raw, raw[:-1] + b',"you":true}')
                for one in self.clients()
                for raw in (encode(one),)
            ]
        return self._listed

    def _changed(self) -> None:
        self._listed = []
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_at(max(loop.time(), self._told_at + PACE), self._tell)

    def _tell(self) -> None:
        self._due = None
        self._told_at = asyncio.get_running_loop().time()
        for follower in tuple(self._since):
            follower.show_presence()
        self.on_told()


LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999, behind which RFC 3339 has no times."""


def rfc3339(at: int) -> str:
    """A time in milliseconds since 1970, as the protocol writes it. A store may hold any number: a time that
    RFC 3339 has not becomes the nearest one, so that no list fails by it."""
    return datetime.fromtimestamp(min(max(at, 0), LATEST) / 1000, UTC).isoformat().replace("+00:00", "Z")
