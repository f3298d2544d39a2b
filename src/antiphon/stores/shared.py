"""SharedStore: a store on which several hubs work, and what they say to each other through it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from antiphon.stores.base import Store

MOST_BYTES = 64 * 1024 * 1024
"""The most bytes of a request, a reply or an announcement."""


class Peer(Struct, frozen=True):
    """A store whose lease lives, and what its process says of itself (`describe`)."""

    store_id: str
    about: dict[str, Any]


class Owner(Struct, frozen=True):
    """The store that has claimed a session, and its process."""

    store_id: str
    host: str
    pid: int


class Claim(NamedTuple):
    """A claim on a session. `alive`: whether the lease of the owner's store lives."""

    session_id: str
    owner: Owner
    alive: bool


class StreamStatus(Struct, frozen=True, kw_only=True):
    """One stream of the store, for operators."""

    name: str
    messages: int
    bytes: int
    replicas: int
    leader: str | None
    """The server that leads the stream; `None` if there is none now, or the servers are no cluster."""
    lag: int
    """Writes that the slowest replica has not confirmed."""


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store that several processes share, on one host or many. Each of them has a store with its own id.

    A store has a lease that it renews. When its process dies, or is paused or cut off for longer than the
    lease, other stores may take over its claims. They do not if no store could renew its lease: each
    one gets its own back.
    """

    @property
    def store_id(self) -> str:
        """The id of this store, new for each one that is opened."""

    @property
    def lease(self) -> float:
        """Seconds after which a store that does not renew its lease loses its claims."""

    async def open(self) -> None:
        """Connect now, to learn now if that cannot be done."""

    async def begin_lease(self) -> None:
        """Take the lease now. Without it, the first claim takes it; until then `peers` does not list it."""

    async def end_lease(self, store_id: str) -> None:
        """End the lease of a store whose process is known to be gone, so that its claims can be taken over at
        once. If the process lives after all, it is as if it had been cut off."""

    def describe(self, about: Mapping[str, Any]) -> None:
        """Say what the lease tells other stores of this process, as JSON. Others see a change about a second
        later."""

    async def peers(self) -> list[Peer]:
        """Return the stores whose leases live, this one included if it has a lease."""

    async def owner(self, session_id: str) -> Owner | None:
        """Return the store that has claimed a session; `None` if there is none, or its lease has ended."""

    async def owners(self) -> list[Claim]:
        """Return all claims, those of ended leases included."""

    async def lost_claim(self) -> str:
        """Wait until this store finds that another one has taken over a claim of it; return the session's id.

        This happens when the lease ended because the process was paused or cut off. An append to the session
        is refused with `StaleWriter` from the moment of the takeover on, and until `release`.
        """

    async def request(self, store_id: str, data: bytes, *, timeout: float) -> bytes:
        """Send a request to another store, and return the reply.

        Raises `NobodyAnswers`, at once, if no store serves requests under this id. Raises `TimeoutError` if
        no reply came: the request may have been handled, or may still be. Raises another `StoreError` if the
        handler failed.
        """

    async def serve(self, handle: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Handle the requests to this store, until it is closed.

        Each handler runs as a task of its own. The handlers of one sender's requests begin in the order in
        which it sent them.
        """

    async def announce(self, topic: str, data: bytes) -> None:
        """Tell all other stores something. Each one gets it once, or not at all."""

    async def listen(self, topic: str, receive: Callable[[str, bytes], None]) -> None:
        """Receive the announcements of the other stores about a topic, until the store is closed.

        `receive` gets the id of the sender and the data, in the order in which each sender sent them.
        """

    async def add_note(self, topic: str, key: str, data: bytes, *, seconds: float | None = None) -> None:
        """Keep a small value for all stores, unless there is one with this key. It ends after `seconds`."""

    async def replace_note(self, topic: str, key: str, data: bytes, *, seconds: float | None = None) -> None:
        """Keep a small value for all stores, in place of the one with this key."""

    async def notes(self, topic: str) -> list[bytes]:
        """Return the values of a topic. One that was just written may be missing."""

    async def status(self) -> list[StreamStatus]:
        """Return the state of all streams, by name."""
