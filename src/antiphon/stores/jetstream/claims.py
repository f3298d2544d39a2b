"""Claims: which store writes a session. A claim ends with the lease of its store."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from antiphon.errors import SessionClaimed, StoreError
from antiphon.stores.jetstream.engine import Engine, Message, Unconfirmed, WrongSequence, end
from antiphon.stores.jetstream.messages import ClaimEntry, LeaseEntry, join, new_key, split
from antiphon.stores.shared import Claim, Owner, Peer

logger = logging.getLogger("antiphon.stores")
AT_ONCE = 32
"""Claims that are written again at a time after the lease had ended."""
SOON = 1.0
"""Seconds between two renewals, at least, however often the description changes."""


class Held(NamedTuple):
    """A claim of this store."""

    entry: ClaimEntry
    seq: int
    """The number of its message."""
    claim: str
    """What the journal calls it."""


class Claims:
    """The claims of one store, and the lease that they depend on. One renewal keeps all claims of a store."""

    def __init__(self, engine: Engine, *, lease: float, lost: Callable[[str], Awaitable[None]]) -> None:
        """`lost` is called with the id of each session whose claim another store has taken over."""
        self._engine = engine
        self._layout = engine.layout
        self.lease = lease
        self._lost = lost
        self.store_id = new_key()
        self._about: dict[str, Any] = {}
        self._described = asyncio.Event()
        """The lease does not yet have the newest description."""
        self._held: dict[str, Held] = {}
        """Claims by the keys of sessions."""
        self._unsure: set[str] = set()
        """Keys of claims that were held when the lease had ended, until they are confirmed."""
        self._renewal: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()
        self._lease_seq = 0
        self._renewed_at: float | None = None
        self._judges_from = 0.0
        self._peers: dict[str, Peer] = {}
        """The stores that were there at the last look."""

    # --- the lease ---------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Take the lease, if this has not been done."""
        async with self._beginning:
            if self._renewal is None:
                await self._write_lease()
                self._renewal = asyncio.get_running_loop().create_task(self._keep())

    def describe(self, about: Mapping[str, Any]) -> None:
        """Say what the lease tells of this process; the renewal that writes it happens soon."""
        copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(about))
        if copied != self._about:
            self._about = copied
            self._described.set()

    def _lease_message(self) -> bytes:
        self._described.clear()
        return join(LeaseEntry(self.store_id, self._about))

    async def _write_lease(self) -> None:
        subject = self._layout.lease(self.store_id)
        self._lease_seq = await self._engine.put(subject, self._lease_message(), ttl=self.lease)
        self._note_renewal()

    async def _renew(self) -> None:
        """Write the lease again. If it had ended, every claim has to be confirmed."""
        subject = self._layout.lease(self.store_id)
        while True:
            try:
                self._lease_seq = await self._engine.publish(
                    subject, self._lease_message(), expected=self._lease_seq, ttl=self.lease
                )
                self._note_renewal()
                return
            except (WrongSequence, Unconfirmed):
                there = await self._engine.last(self._layout.claims, subject)
                if there is None:
                    break
                self._lease_seq = there.seq
        logger.warning("lease of store %s had ended; its claims are being checked", self.store_id)
        self._unsure.update(self._held)
        await self._write_lease()

    def _note_renewal(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._is_overdue(now):
            self._judges_from = now + self.lease
        self._renewed_at = now

    def _is_overdue(self, now: float) -> bool:
        """Return whether the lease was not renewed for longer than one missed renewal takes."""
        return self._renewed_at is not None and now - self._renewed_at > self.lease / 2

    @property
    def _judges(self) -> bool:
        """Whether this store takes a missing lease for the end of the store that had it.

        While the servers choose a leader, no store can renew its lease. If that takes longer than a lease,
        all leases end, and the first stores that are back would take over the sessions of the others, which
        are well. A lease ends by that only if nobody could write for more than half of its time: the last
        renewal was at most a third of it ago. Each store notices this by its own lease. From then on, and for
        one more lease, in which the others renew theirs, it takes nothing over. A takeover can only become
        later by this rule. That no two stores write a session does not depend on it: the sequence of the
        journal refuses a writer that another one has replaced.
        """
        now = asyncio.get_running_loop().time()
        return now >= self._judges_from and not self._is_overdue(now)

    async def _keep(self) -> None:
        pause = self.lease / 3
        while True:
            await asyncio.sleep(min(SOON, pause))
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0, pause - SOON)):
                    await self._described.wait()
            try:
                await self._renew()
                while self._unsure:
                    await asyncio.gather(*map(self._confirm, tuple(self._unsure)[:AT_ONCE]))
            except StoreError as error:
                logger.warning("lease not renewed: %s", error)

    async def _confirm(self, key: str) -> None:
        """Write a claim again, unless another store has taken it over.

        A store that saw the lease ended and claims the session only now is refused by this message.
        """
        while (held := self._held.get(key)) is not None:
            try:
                seq = await self._engine.publish(self._layout.claim(key), join(held.entry), expected=held.seq)
            except (WrongSequence, Unconfirmed):
                there, seq = await self._look(key)
                if there is None or there.store != self.store_id:
                    if self._held.pop(key, None) is not None:
                        await self._lost(held.entry.session_id)
                    break
                if seq == held.seq:
                    continue  # not written
            if key in self._held:
                self._held[key] = held._replace(seq=seq)
            break
        self._unsure.discard(key)

    # --- the claims of this store ------------------------------------------------------------------

    async def take(self, session_id: str, key: str, owner: str) -> str:
        """Claim a session, and return the claim as the journal calls it."""
        held = self._held.get(key)
        if held is not None:
            if held.entry.owner != owner:
                raise SessionClaimed(session_id, owner=held.entry.owner, pid=held.entry.pid)
            return held.claim
        await self.begin()
        entry = ClaimEntry(
            session_id=session_id,
            owner=owner,
            store=self.store_id,
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        while True:
            there, seq = await self._look(key)
            if there is not None and there.store == self.store_id:
                break  # written before, and not confirmed
            if there is not None and await self._lives(there):
                raise SessionClaimed(session_id, owner=there.owner, pid=there.pid)
            try:
                seq = await self._engine.publish(self._layout.claim(key), join(entry), expected=seq)
                break
            except (WrongSequence, Unconfirmed):
                await asyncio.sleep(0)  # look again: it may be written, or another store was first
        claim = f"{self.store_id}:{seq}"
        self._held[key] = Held(entry, seq, claim)
        return claim

    async def refuse_foreign(self, session_id: str, key: str) -> None:
        """Raise `SessionClaimed` if another store has claimed the session."""
        there, _ = await self._look(key)
        if there is not None and there.store != self.store_id and await self._lives(there):
            raise SessionClaimed(session_id, owner=there.owner, pid=there.pid)

    async def release(self, key: str, owner: str | None = None) -> bool:
        """Release a claim of this store. Returns `False`, and does nothing, if it has another owner."""
        held = self._held.get(key)
        if held is None:
            return True
        if owner not in (None, held.entry.owner):
            return False
        del self._held[key]
        await self._engine.remove(self._layout.claims, held.seq)
        return True

    async def close(self) -> None:
        """Release everything, and end the lease. If NATS does not answer, the lease expires by itself."""
        if self._renewal is None:
            return
        await end(self._renewal)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.lease):
                await self._engine.remove(self._layout.claims, self._lease_seq)
                for key in tuple(self._held):
                    await self.release(key)

    # --- the claims of all stores ------------------------------------------------------------------

    async def _look(self, key: str) -> tuple[ClaimEntry | None, int]:
        found = await self._engine.last(self._layout.claims, self._layout.claim(key))
        return (None, 0) if found is None else (split(ClaimEntry, found.data)[0], found.seq)

    async def _lives(self, entry: ClaimEntry) -> bool:
        lease = await self._engine.last(self._layout.claims, self._layout.lease(entry.store))
        return lease is not None or not self._judges

    async def end_lease(self, store_id: str) -> None:
        """End the lease of another store. A renewal that is under way is refused by its expected number."""
        lease = await self._engine.last(self._layout.claims, self._layout.lease(store_id))
        if lease is not None:
            await self._engine.remove(self._layout.claims, lease.seq)

    async def owner(self, key: str) -> Owner | None:
        """Return the store that has claimed a session, if its lease lives."""
        there, _ = await self._look(key)
        return None if there is None or not await self._lives(there) else _owner(there)

    async def peers(self) -> list[Peer]:
        """Return the stores whose leases live, as any replica has them, and those that are not judged."""
        entries = [
            split(LeaseEntry, message.data)[0] for message in await self._all(self._layout.every_lease)
        ]
        # A lease that is renewed while the pages are read is on two of them.
        found = {entry.store: Peer(entry.store, entry.about) for entry in entries}
        self._peers = found if self._judges else {**self._peers, **found}
        return list(self._peers.values())

    async def owners(self) -> list[Claim]:
        """Return all claims, as any replica has them."""
        entries = [
            split(ClaimEntry, message.data)[0] for message in await self._all(self._layout.every_claim)
        ]
        alive = {peer.store_id for peer in await self.peers()}
        last = {entry.session_id: entry for entry in entries}.values()
        return [Claim(entry.session_id, _owner(entry), entry.store in alive) for entry in last]

    async def _all(self, subject: str) -> list[Message]:
        found: list[Message] = []
        while page := await self._engine.page(
            self._layout.claims, subject, found[-1].seq + 1 if found else 1, limit_bytes=1 << 20
        ):
            found += page
        return found


def _owner(entry: ClaimEntry) -> Owner:
    return Owner(entry.store, entry.host, entry.pid)
