"""SessionNews: tells the other hubs which sessions this one serves, in which state and with which clients,
and learns the same from them.

So presence and the list of sessions span hubs. A hub that has missed news asks for all sessions of their
sender.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from antiphon.engine.snapshot import state_word
from antiphon.errors import StoreError
from antiphon.hub.cluster.announcements import (
    SESSIONS,
    Ask,
    Beat,
    Bye,
    News,
    Seen,
    SessionAnnouncement,
    answers_to,
    decode,
    encode,
    session_announcements,
)
from antiphon.hub.cluster.sessions_elsewhere import SessionsElsewhere
from antiphon.server.distant.session import AnySession
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession
from antiphon.server.tasks import Tasks
from antiphon.stores.shared import SharedStore

logger = logging.getLogger("antiphon.hub")

SOON = 0.02
PACE = 0.1
"""Seconds between two news: changes that come together are told together."""


class SessionNews:
    def __init__(
        self,
        store: SharedStore,
        registry: SessionRegistry,
        elsewhere: SessionsElsewhere,
        tasks: Tasks,
        *,
        changed: Callable[[str], None],
    ) -> None:
        """`elsewhere` gets what the others say. `changed` is called with the id of each session that another
        hub says something of."""
        self._store = store
        self._registry = registry
        self._elsewhere = elsewhere
        self._tasks = tasks
        self._changed = changed
        self._number = 0
        """How many news were sent."""
        self._told: dict[str, tuple[Seen, str | None]] = {}
        """What was said last of each session that is open here, with its title."""
        self._due: set[str] = set()
        self._noted = asyncio.Event()
        self._heard: dict[str, float] = {}
        """When each hub was last heard of."""
        self._behind: set[str] = set()
        """Hubs of which news were missed, until they have told all of their sessions."""

    async def begin(self) -> None:
        """Listen, ask the other hubs for their sessions, and tell changes from now on."""
        await self._store.listen(SESSIONS, self._receive)
        await self._store.listen(answers_to(self._store.store_id), self._receive)
        await self._tell(Ask())
        self._tasks.start_soon(self._run())

    async def end(self) -> None:
        await self._tell(Bye())

    # --- telling -----------------------------------------------------------------------------------

    def note(self, session_id: str) -> None:
        """Note that a session was opened or closed here, or that its entry in lists may have changed."""
        session = self._registry.serving(session_id)
        if session is not None:
            for hub, seen in self._elsewhere.of(session_id).items():
                session.feed.presence.set_elsewhere(hub, seen.clients)
        self._due.add(session_id)
        self._noted.set()

    async def _run(self) -> None:
        while True:
            await self._noted.wait()
            await asyncio.sleep(SOON)
            self._noted.clear()
            due, self._due = self._due, set()
            seen = tuple(each for id in due if (each := self._news_of(id)) is not None)
            if seen:
                self._number += 1
                await self._tell(News(number=self._number, seen=seen))
            await asyncio.sleep(PACE)

    def _news_of(self, session_id: str) -> Seen | None:
        """Return what is new of a session. Of one that is not open here, anything may have changed: it may
        have been archived or deleted."""
        session = self._registry.serving(session_id)
        if session is None:
            self._told.pop(session_id, None)
            return Seen(session_id=session_id)
        said = _seen(session), _title(session)
        if self._told.get(session_id) == said:
            return None
        self._told[session_id] = said
        return said[0]

    def _all(self) -> News:
        sessions: list[AnySession] = [*self._registry.sessions, *self._registry.distant.sessions]
        return News(number=self._number, seen=tuple(map(_seen, sessions)), whole=True)

    async def beat(self) -> None:
        """Tell the other hubs how many news there were."""
        await self._tell(Beat(number=self._number))

    async def _tell(self, said: SessionAnnouncement, topic: str = SESSIONS) -> None:
        try:
            await self._store.announce(topic, encode(said))
        except StoreError as error:
            logger.info("announcement to other hubs failed: %s", error)  # they ask for what they missed

    # --- learning ----------------------------------------------------------------------------------

    def _receive(self, hub: str, data: bytes) -> None:
        said = decode(session_announcements, data, sender=hub)
        self._heard[hub] = asyncio.get_running_loop().time()
        match said:
            case News():
                if not (said.whole or self._elsewhere.is_current(hub, said.number - 1)):
                    self._ask(hub)
                if said.whole:
                    self._behind.discard(hub)
                self._show(hub, self._elsewhere.apply(hub, said))
            case Beat():
                if hub in self._behind or not self._elsewhere.is_current(hub, said.number):
                    self._behind.discard(hub)  # ask again: the answer may be lost
                    self._ask(hub)
            case Ask():
                self._tasks.start_soon(self._tell(self._all(), answers_to(hub)))
            case Bye():
                self.forget(hub)

    def _ask(self, hub: str) -> None:
        if hub not in self._behind:
            self._behind.add(hub)
            self._tasks.start_soon(self._tell(Ask(), answers_to(hub)))

    def _show(self, hub: str, session_ids: set[str]) -> None:
        """Show the clients here what a hub says of sessions."""
        for id in session_ids:
            session, seen = self._registry.serving(id), self._elsewhere.of(id).get(hub)
            if session is not None:
                session.feed.presence.set_elsewhere(hub, () if seen is None else seen.clients)
            self._changed(id)

    def keep_only(self, hubs: set[str], *, silence: float) -> None:
        """Forget all hubs but these, unless they were heard of in the last `silence` seconds."""
        now = asyncio.get_running_loop().time()
        for hub in self._elsewhere.hubs:
            if hub not in hubs and now - self._heard.get(hub, 0) > silence:
                self.forget(hub)

    def forget(self, hub: str) -> None:
        """Forget a hub that has ended."""
        self._heard.pop(hub, None)
        self._behind.discard(hub)
        self._show(hub, self._elsewhere.forget(hub))


def _seen(session: AnySession) -> Seen:
    return Seen(
        session_id=session.id,
        state=state_word(session.fold) if isinstance(session, ServedSession) else None,
        clients=tuple(session.feed.presence.local_clients()),
    )


def _title(session: AnySession) -> str | None:
    """Return the title, if this hub is the one that tells of it."""
    info = session.fold.facts.info if isinstance(session, ServedSession) else None
    return None if info is None else info.title
