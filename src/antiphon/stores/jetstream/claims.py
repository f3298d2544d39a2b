"""Claims: which store writes a session. A claim ends with the lease of its store."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import suppress

from antiphon.errors import SessionClaimed, StoreError
from antiphon.stores.jetstream.engine import Engine, Unconfirmed, WrongSequence
from antiphon.stores.jetstream.messages import ClaimEntry, join, new_key, split

logger = logging.getLogger("antiphon.stores")


class Claims:
    """The claims of one store, and the lease that they depend on. One renewal keeps all claims of a store."""

    def __init__(self, engine: Engine, *, lease: float) -> None:
        self._engine = engine
        self._layout = engine.layout
        self._lease = lease
        self.store_id = new_key()
        self._held: dict[str, tuple[ClaimEntry, int]] = {}
        """Claims by the keys of sessions, with the numbers of their messages."""
        self._renewal: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()
        self._lease_seq = 0

    async def begin(self) -> None:
        """Take the lease, if this has not been done."""
        async with self._beginning:
            if self._renewal is None:
                await self._renew()
                self._renewal = asyncio.get_running_loop().create_task(self._keep())

    async def _renew(self) -> None:
        self._lease_seq = await self._engine.put(self._layout.lease(self.store_id), b"", ttl=self._lease)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            try:
                await self._renew()
            except StoreError as error:
                logger.warning("lease not renewed: %s", error)

    async def take(self, session_id: str, key: str, owner: str) -> str | None:
        """Claim a session. Returns the claim; `None` if this store has it already under the same owner."""
        held = self._held.get(key)
        if held is not None:
            if held[0].owner != owner:
                raise SessionClaimed(session_id, owner=held[0].owner, pid=held[0].pid)
            return None
        await self.begin()
        entry = ClaimEntry(owner=owner, store=self.store_id, host=socket.gethostname(), pid=os.getpid())
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
        self._held[key] = entry, seq
        return f"{self.store_id}:{seq}"

    async def refuse_foreign(self, session_id: str, key: str) -> None:
        """Raise `SessionClaimed` if another store has claimed the session."""
        there, _ = await self._look(key)
        if there is not None and there.store != self.store_id and await self._lives(there):
            raise SessionClaimed(session_id, owner=there.owner, pid=there.pid)

    async def _look(self, key: str) -> tuple[ClaimEntry | None, int]:
        found = await self._engine.last(self._layout.claims, self._layout.claim(key))
        return (None, 0) if found is None else (split(ClaimEntry, found.data)[0], found.seq)

    async def _lives(self, entry: ClaimEntry) -> bool:
        lease = await self._engine.last(self._layout.claims, self._layout.lease(entry.store))
        return lease is not None

    async def release(self, key: str, owner: str | None = None) -> bool:
        """Release a claim of this store. Returns whether it was held, by this owner if one is given."""
        held = self._held.get(key)
        if held is None or owner not in (None, held[0].owner):
            return False
        del self._held[key]
        await self._engine.remove(self._layout.claims, held[1])
        return True

    async def close(self) -> None:
        """Release everything, and end the lease. If NATS does not answer, the lease expires by itself."""
        if self._renewal is None:
            return
        self._renewal.cancel()
        await asyncio.wait([self._renewal])
        with suppress(TimeoutError):
            async with asyncio.timeout(self._lease):
                await self._engine.remove(self._layout.claims, self._lease_seq)
                for key in tuple(self._held):
                    await self.release(key)
