"""Cluster: the sessions of the other hubs on a store, as one hub reaches them.

It finds the owners of sessions and sends them what clients ask for.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from antiphon.errors import NobodyAnswers, SessionClaimed, StoreError
from antiphon.hub.about import HubAbout
from antiphon.hub.cluster.announcements import RELEASED, Released
from antiphon.hub.cluster.announcements import encode as encode_announcement
from antiphon.hub.cluster.home import Home, recorded_home
from antiphon.hub.cluster.messages import NOT_OWNED, Asked, Reply, decode_reply, encode
from antiphon.hub.cluster.remote_control import PAUSE, RemoteControl
from antiphon.hub.cluster.sessions_elsewhere import SessionsElsewhere
from antiphon.hub.records import recorded_agent
from antiphon.live.feed import SessionFeed
from antiphon.schema.antiphon.hub import HubInfo, HubsResponse
from antiphon.server.control.control import Control
from antiphon.server.control.operations import Close
from antiphon.server.distant.elsewhere import Glance
from antiphon.server.ids import new_id
from antiphon.server.tasks import Tasks
from antiphon.stores.base import SessionRecord
from antiphon.stores.shared import Peer, SharedStore

logger = logging.getLogger("antiphon.hub")

ANSWER = 5.0
"""Seconds for which a reply is waited for before the same operation is sent again."""
PATIENCE = 3
"""Leases for which an owner is looked for: after one it is known to be gone, and then it is replaced."""
RESULTS = ("done", "refused", "unanswered", "not_owned")
"""How an operation that is sent to an owner ends. It is sent again after the last two."""


class Cluster:
    def __init__(self, store: SharedStore, home: Home, tasks: Tasks, *, works: bool, name: str = "") -> None:
        """Find the other hubs on a store.

        works: whether this hub works on sessions; otherwise it owns none
        name: `HubAbout.name`; empty if the hub has none
        """
        self.store = store
        self.name = name
        self._works = works
        self.home = home
        self._tasks = tasks
        self._owners: dict[str, str] = {}
        """The owners that were found last, by session."""
        self.peers: list[Peer] = []
        """The hubs that were there at the last look, this one included."""
        self.takeovers = 0
        """How many sessions this hub took over."""
        self.forwarded: Counter[str] = Counter(dict.fromkeys(RESULTS, 0))
        """How operations that were sent to owners ended."""
        self.sessions = SessionsElsewhere()
        """What the other hubs say of their sessions."""

    # --- what a registry asks (`Elsewhere`) ----------------------------------------------------------

    def may_own(self, record: SessionRecord) -> bool:
        return self._works and self.home.may_own(record)

    def control(
        self, feed: SessionFeed, record: SessionRecord, take_over: Callable[[], Awaitable[Control]]
    ) -> Control:
        async def own() -> Control | None:
            try:
                return await take_over() if self.may_own(record) else None
            except SessionClaimed:
                return None  # another hub was faster
            except StoreError as error:
                logger.warning("session %s cannot be taken over: %s", feed.session_id, error)
                return None

        home, agent = recorded_home(record), recorded_agent(record)
        return RemoteControl(
            feed,
            self.send,
            own,
            self._tasks,
            patience=PATIENCE * self.store.lease,
            label=self.home.label,
            home=None if home is None or home.movable else home.label,
            introduction={} if agent is None else {"agent": agent},
        )

    async def is_free(self, session_id: str) -> bool:
        owner = await self.store.owner(session_id)
        return owner is None or owner.store_id == self.store.store_id

    async def close(self, session_id: str, credential: str | None) -> None:
        asked = Asked(
            id=new_id("op"),
            session_id=session_id,
            operation=Close(),
            credential=credential,
            label=self.home.label,
        )
        async with asyncio.timeout(PATIENCE * self.store.lease):
            while True:
                if await self.send(asked) is not None:
                    return
                await asyncio.sleep(PAUSE)

    def glance(self, session_id: str) -> Glance | None:
        return self.sessions.glance(session_id)

    async def released(self, session_id: str, seq: int, *, closed: bool, waits: bool) -> None:
        released = Released(session_id=session_id, seq=seq, closed=closed, waits=waits)
        try:
            await self.store.announce(RELEASED, encode_announcement(released))
        except StoreError as error:
            logger.info("release of session %s not announced: %s", session_id, error)

    def taken_over(self, session_id: str) -> None:
        self.takeovers += 1
        logger.info("session %s taken over from another hub", session_id)

    # --- the other hubs ------------------------------------------------------------------------------

    async def end_earlier_lease(self) -> None:
        """End the lease of an earlier process of this hub that was killed, so that its sessions need not wait
        until the lease ends by itself.

        That process is gone: this one holds the lock of the data folder that the name stands for, and the
        lock ends with a process. A copy of the folder on a host of the same name is the exception. It is safe
        too: the journal refuses what a replaced owner writes.
        """
        for peer in await self.store.peers():
            if self.name and HubAbout.read(peer.about).name == self.name:
                logger.info("lease %s of an earlier process of this hub ended", peer.store_id)
                await self.store.end_lease(peer.store_id)

    async def look(self) -> set[str]:
        """Look which hubs are there, and return the ids of those that are gone since the last look."""
        before = {peer.store_id for peer in self.peers}
        self.peers = await self.store.peers()
        return before - {peer.store_id for peer in self.peers}

    def hubs(self, about: Mapping[str, Any], owned: int) -> HubsResponse:
        """Return the hubs in a stable order.

        about: what this hub says of itself now
        owned: how many open sessions it owns
        """
        mine, owners = self.store.store_id, self.sessions.owned()
        found = [_info(about, owned, you=True)]
        found += [_info(peer.about, owners[peer.store_id]) for peer in self.peers if peer.store_id != mine]
        return HubsResponse(hubs=sorted(found, key=lambda hub: (hub.label, hub.address or "")))

    # --- asking owners -------------------------------------------------------------------------------

    async def send(self, asked: Asked) -> Reply | None:
        """Send an operation to the owner of its session. Returns `None` if the owner does not answer, and
        `NOT_OWNED` if the session has no owner."""
        reply = await self._send(asked)
        if reply is None:
            self.forwarded["unanswered"] += 1
        elif not reply.owned:
            self.forwarded["not_owned"] += 1
        else:
            self.forwarded["done" if reply.failure is None else "refused"] += 1
        return reply

    async def _send(self, asked: Asked) -> Reply | None:
        session_id = asked.session_id
        try:
            owner = self._owners.get(session_id) or await self._find_owner(asked)
            if owner is None or owner == self.store.store_id:
                return NOT_OWNED
            self._owners[session_id] = owner
            reply = decode_reply(await self.store.request(owner, encode(asked), timeout=ANSWER))
        except TimeoutError:
            self._owners.pop(session_id, None)
            return None  # the reply may be lost; the owner knows the id of the operation
        except NobodyAnswers:
            self._owners.pop(session_id, None)
            return None  # it is looked for again: its lease may be gone by then
        except StoreError as error:  # NATS is away, or the owner could not read the operation
            logger.warning("operation on session %s not sent: %s", session_id, error)
            self._owners.pop(session_id, None)
            return None
        if not reply.owned:
            self._owners.pop(session_id, None)
        return reply

    async def _find_owner(self, asked: Asked) -> str | None:
        found = await self.store.owner(asked.session_id)
        return await self._hub_at(asked.home) if found is None else found.store_id

    async def _hub_at(self, label: str | None) -> str | None:
        """Return a hub on a host, if there is one."""
        if label is None:
            return None
        hubs = await self.store.peers()
        return next((hub.store_id for hub in hubs if hub.about.get("label") == label), None)


def _info(about: Mapping[str, Any], sessions: int, *, you: bool = False) -> HubInfo:
    known = HubAbout.read(about)
    return HubInfo(
        label=known.label,
        address=known.address or None,
        version=known.version or None,
        sessions=sessions,
        clients=known.clients,
        you=you,
    )
