"""Presence: the clients that are attached to a live session now. It is sent to clients and not stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import inf
from operator import itemgetter
from typing import Protocol

from msgspec import structs

from antiphon.engine.json_values import encode
from antiphon.schema.antiphon.clients import Present, Who
from antiphon.stores.base import LATEST

PACE = 0.1
"""Seconds between two notices: clients that join together are announced together."""


class AttachedClient(Protocol):
    """One attachment, as far as presence needs it."""

    @property
    def who(self) -> Who | None: ...

    @property
    def client_version(self) -> str | None: ...

    def show_presence(self) -> None: ...


class Presence:
    """A client with several attachments is listed once, since its first one."""

    def __init__(self, clock: Callable[[], int], *, on_change: Callable[[], None]) -> None:
        """`on_change` is called when a client has joined or left, as often as clients are notified."""
        self._clock = clock
        self._since: dict[AttachedClient, int] = {}
        self._elsewhere: dict[str, list[tuple[float, Present]]] = {}
        """The clients at other hubs, by place, each with the time at which it joined."""
        self._listed: list[tuple[str, bytes, bytes]] = []
        """The clients: id, how the others see it, and how it sees itself."""
        self._notified_at = 0.0
        self._due: asyncio.TimerHandle | None = None
        self._on_change = on_change
        self._closed = False

    def close(self) -> None:
        """Tell clients nothing more: the session is put away."""
        self._closed = True
        if self._due is not None:
            self._due.cancel()

    def join(self, follower: AttachedClient) -> None:
        if follower.who is not None and follower not in self._since:
            self._since[follower] = self._clock()
            self._changed()

    def leave(self, follower: AttachedClient) -> None:
        if self._since.pop(follower, None) is not None:
            self._changed()

    def move(self, before: AttachedClient, follower: AttachedClient) -> None:
        """Replace an attachment by another one of the same client: no client joins or leaves."""
        since = self._since.pop(before, None)
        if since is not None:
            self._since[follower] = since
            self._changed()  # it may have another name now

    def hand_over(self, follower: AttachedClient, to: Presence) -> None:
        """Move an attachment to another feed of the session. It stays there since it joined here."""
        if to is not self and follower in self._since:
            to._since[follower] = self._since.pop(follower)
            self._changed()
            to._changed()

    def set_elsewhere(self, place: str, clients: Sequence[Present]) -> None:
        """Replace the list of the clients that are attached to the session at another place."""
        listed = [(_joined(one), structs.replace(one, you=False)) for one in clients]
        if listed != self._elsewhere.get(place, []):
            self._elsewhere[place] = listed
            if not listed:
                del self._elsewhere[place]
            self._changed()

    def clients(self, *, you: AttachedClient | None = None) -> list[Present]:
        """Return the attached clients, the first to join first. `you`: the client that gets the list."""
        own = None if you is None or you.who is None else you.who.client_id
        present = self._present(elsewhere=True)
        return [structs.replace(one, you=True) if one.client_id == own else one for one in present]

    def local_clients(self) -> list[Present]:
        """Return the clients that are attached here, the first to join first."""
        return self._present(elsewhere=False)

    def _present(self, *, elsewhere: bool) -> list[Present]:
        found: dict[str, tuple[float, Present]] = {}
        for follower, since in sorted(self._since.items(), key=lambda entry: entry[1]):
            who = follower.who
            assert who is not None
            if who.client_id not in found:
                found[who.client_id] = (
                    since,
                    Present(
                        client_id=who.client_id,
                        name=who.name,
                        version=follower.client_version,
                        joined_at=rfc3339(since),
                    ),
                )
        if elsewhere and self._elsewhere:
            others = (entry for listed in self._elsewhere.values() for entry in listed)
            for at, one in sorted(others, key=itemgetter(0)):
                found.setdefault(one.client_id, (at, one))
        return [one for _, one in sorted(found.values(), key=itemgetter(0))]

    def update(self, who: Who | None) -> bytes:
        """Return the update for one client. The entries are encoded once; its own is marked as `you`."""
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
        if self._due is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._due = loop.call_at(max(loop.time(), self._notified_at + PACE), self._notify)

    def _notify(self) -> None:
        self._due = None
        self._notified_at = asyncio.get_running_loop().time()
        for follower in tuple(self._since):
            follower.show_presence()
        self._on_change()


def _joined(one: Present) -> float:
    """Return when a client joined, in milliseconds since 1970. A client whose time is unknown comes last."""
    try:
        return round(datetime.fromisoformat(one.joined_at or "").timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return inf


def rfc3339(at: int) -> str:
    """Format a time in milliseconds since 1970 as the protocol has it. A store may hold any number: one that
    RFC 3339 cannot express becomes the nearest time, so that no list fails because of it."""
    return datetime.fromtimestamp(min(max(at, 0), LATEST) / 1000, UTC).isoformat().replace("+00:00", "Z")
