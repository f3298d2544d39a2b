"""DistantSessions: the sessions that other servers own and clients of this one follow.

A session moves while its clients stay attached: this server takes it over when its owner is gone, and follows
it, or opens it again, when it was lost here. What clients ask for meanwhile is performed once, where the
session is served then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from msgspec import structs

from antiphon.errors import (
    AntiphonError,
    RequestCancelled,
    RequestError,
    SessionClaimed,
    SessionUnknown,
    StoreError,
)
from antiphon.live.attachment_writer import MOVE_WAIT, AttachmentWriter
from antiphon.live.followed_session import FollowedSession
from antiphon.live.session import LiveSession
from antiphon.server.access import EVERYTHING, AccessPolicy
from antiphon.server.clients.attachments import LAST_UPDATES, Attachments
from antiphon.server.control.control import Control
from antiphon.server.control.operations import Abandon, Cancel, Operation, Submit, identified
from antiphon.server.distant.elsewhere import Elsewhere
from antiphon.server.distant.session import AnySession, DistantSession
from antiphon.server.session import ServedSession
from antiphon.server.tasks import ServerTasks
from antiphon.stores.base import SessionRecord, Store

logger = logging.getLogger("antiphon.server")

RETRY = 0.5
"""Seconds between two attempts to open a session again whose store has failed."""


class Here(NamedTuple):
    """What this server can do with sessions that it owns, or is about to own."""

    find: Callable[[str], ServedSession | None]
    """Return a session that is open and owned here."""
    open: Callable[[str], Awaitable[AnySession]]
    """Return a session that is open here, or open it from the store."""
    once: Callable[[str, Callable[[], Coroutine[Any, Any, AnySession]]], Awaitable[AnySession]]
    """Open a session in a given way, once for all callers that ask for it meanwhile."""
    read: Callable[[str], Awaitable[LiveSession]]
    """Claim a session and read it from the store."""
    serve: Callable[[LiveSession], Awaitable[ServedSession]]
    """Serve a session that was read."""
    release: Callable[[ServedSession], Awaitable[None]]
    """Put a session away; it can be opened again."""
    retire: Callable[[ServedSession], None]
    """Put a subagent away whose work is over."""


class DistantSessions:
    def __init__(
        self,
        store: Store,
        elsewhere: Elsewhere | None,
        here: Here,
        attachments: Attachments,
        tasks: ServerTasks,
        *,
        clock: Callable[[], int],
        changed: Callable[[str], None],
    ) -> None:
        """Begin without sessions.

        elsewhere: the other servers that work on the store; without any, no session is distant
        clock: returns milliseconds since 1970
        changed: called with the id of a session whose entry in `session/list` may have changed, or is gone
        """
        self._store = store
        self._elsewhere = elsewhere
        self._here = here
        self._attachments = attachments
        self._tasks = tasks
        self._clock = clock
        self._changed = changed
        self._sessions: dict[str, DistantSession] = {}
        self._recovering: dict[str, asyncio.Task[None]] = {}
        """The sessions that were lost here and are about to be served again."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def sessions(self) -> list[DistantSession]:
        """The sessions that are followed here and owned by another server."""
        return list(self._sessions.values())

    def serving(self, session_id: str) -> AnySession | None:
        """Return a session that is open here, wherever it is worked on. While it is being taken over, it is
        the distant one, which its clients follow."""
        return self._sessions.get(session_id) or self._here.find(session_id)

    async def served(self, session_id: str) -> AnySession | None:
        """Return a session that is open here. One that was lost is waited for until it is served again."""
        while (recovering := self._recovering.get(session_id)) is not None:
            await asyncio.wait([recovering])
        return self.serving(session_id)

    # --- following ---------------------------------------------------------------------------------

    async def follow(self, record: SessionRecord, voice: AttachmentWriter | None) -> DistantSession:
        """Follow a session that another server owns, or may own. `voice` gets the replay while it is read,
        and is pinned to the session."""
        assert self._elsewhere is not None
        id = record.session_id
        preview = None if voice is None else voice.preview
        feed = await FollowedSession.open(self._store, id, clock=self._clock, preview=preview)

        async def take_over() -> Control:
            return (await self.take_over(id)).control

        control = self._elsewhere.control(feed, record, take_over)
        session = DistantSession(feed, control, self._attachments.connections)
        feed.observe(changed=lambda: self._changed(id), failed=lambda: self._leave_soon(session))
        if voice is not None:
            self._attachments.pin(voice, session, history=True)  # before more is read than was previewed
        await session.begin()
        self._sessions[id] = session
        self._changed(id)
        return session

    def leave_unused(self, session_id: str) -> None:
        """Follow a session of another server no more if no client here does."""
        session = self._sessions.get(session_id)
        if session is not None and not session.clients() and not session.joining:
            self._leave_soon(session)

    async def leave_if_over(self, subagent: DistantSession) -> None:
        """Detach the clients of a subagent that no server works on, once they have the last of it."""
        assert self._elsewhere is not None
        if await self._elsewhere.is_free(subagent.id):
            record = await self._store.get(subagent.id)
            if record is not None:
                await self.closed_elsewhere(subagent, record.last)

    def _leave_soon(self, session: DistantSession) -> None:
        self._tasks.ends.start_soon(self.leave(session))

    async def leave(self, session: DistantSession) -> None:
        """Follow a session of another server no more: it was deleted, or no client is left here."""
        if self._sessions.get(session.id) is not session:
            return
        del self._sessions[session.id]
        await session.stop()
        await self._attachments.clear(session.id)
        self._changed(session.id)

    async def closed_elsewhere(self, session: DistantSession, seq: int) -> None:
        """Detach the clients of a session that was closed for all, once they have its last event `seq`."""
        with suppress(TimeoutError, StoreError):
            async with asyncio.timeout(LAST_UPDATES):
                await session.feed.durable(seq)
        if session.joining:
            await asyncio.wait(session.joining, timeout=LAST_UPDATES)
        await self._attachments.dismiss_all(session.id)
        await self.leave(session)

    # --- taking over -------------------------------------------------------------------------------

    async def take_over(self, session_id: str) -> AnySession:
        """Own a session whose owner is gone: the turn that it was in ends as interrupted, and its clients
        here stay attached. If another server was faster, it stays distant; if it is not followed here,
        `SessionClaimed` is raised."""
        return await self._here.once(session_id, partial(self._take_over, session_id))

    async def _take_over(self, session_id: str) -> AnySession:
        assert self._elsewhere is not None
        owned, distant = self._here.find(session_id), self._sessions.get(session_id)
        if owned is not None:
            return owned  # it was taken over since the caller asked for that
        try:
            live = await self._here.read(session_id)
        except SessionClaimed:
            if distant is None:
                raise
            return distant
        self._elsewhere.taken_over(session_id)
        session = await self._here.serve(live)
        if session.live.failed:
            if distant is None:
                raise StoreError(f"session {session_id} was lost while it was taken over")
            return distant
        if distant is not None:
            await self._replace(distant, session)
        session.worker.advance()
        if distant is not None and distant.parent is not None:
            self._here.retire(session)  # the agent that it worked at is gone
        return session

    async def _replace(self, distant: DistantSession, session: ServedSession) -> None:
        self._sessions.pop(distant.id, None)
        self._move(distant.attached(), session)
        await distant.stop()

    def _move(self, voices: Sequence[AttachmentWriter], session: AnySession) -> None:
        for voice in voices:
            voice.move_to(session.feed, session.control.answer)

    # --- losing and recovering ---------------------------------------------------------------------

    def lose(self, session_id: str) -> None:
        """Follow a session that another server has taken over from this one."""
        session = self._here.find(session_id)
        if session is not None:
            session.live.lose()

    def recover_soon(self, failed: ServedSession) -> None:
        """Serve a session again, from its journal, that could not be worked on here any more. Its clients
        stay attached."""
        task = self._recovering[failed.id] = self._tasks.ends.start_soon(self._recover(failed))

        def recovered(_: object) -> None:
            if self._recovering.get(failed.id) is task:
                del self._recovering[failed.id]

        task.add_done_callback(recovered)

    async def _recover(self, failed: ServedSession) -> None:
        await self._here.release(failed)
        with suppress(TimeoutError):
            async with asyncio.timeout(MOVE_WAIT):
                while True:
                    try:
                        session = await self._here.open(failed.id)
                        break
                    except (StoreError, RequestError) as error:
                        logger.warning("session %s cannot be opened again yet: %s", failed.id, error)
                    except SessionUnknown:
                        return
                    await asyncio.sleep(RETRY)
                self._move(failed.attached(), session)
                self._tasks.starts.start_soon(self._submit_again(failed, _advanced(session)))

    async def _submit_again(self, failed: ServedSession, session: AnySession) -> None:
        """Submit the prompts again that clients wait for and that were not committed. Those that were are
        known by their ids."""
        waiting = [
            (client, voice, message_id)
            for client in failed.clients()
            for voice in [client.voices[failed.id]]
            for message_id in voice.pending.waiting
        ]
        for client, voice, message_id in waiting:
            entry = failed.fold.prompts.get(message_id)
            if entry is None or session.fold.prompts.get(message_id) is not None:
                continue
            if entry.settled or voice.pending.is_abandoned(message_id):
                # It was cancelled: before the session was lost, and neither was committed, or after that.
                voice.pending.refused(message_id, RequestCancelled().to_wire())
                continue
            asked = Submit(
                message_id=message_id,
                content=entry.raw_content,
                delivery=entry.delivery,
                operation_id=entry.operation_id,
                sender=voice.who,
                meta=entry.meta,
                request_id=entry.request_id,
            )
            try:
                await self.perform(session, asked, client.policy)
            except AntiphonError as error:
                voice.pending.refused(message_id, error.to_wire(), withdrawn=True)

    # --- performing --------------------------------------------------------------------------------

    async def perform(
        self, session: AnySession, operation: Operation, policy: AccessPolicy = EVERYTHING
    ) -> Any:
        """Perform an operation on a session. If the session is lost here meanwhile, perform it where it is
        served then; the operation is known by its id, so it is done once."""
        if self._elsewhere is None:
            return await session.control.perform(operation, policy)
        if isinstance(operation, Abandon):
            # A prompt that is still on its way to an owner must not arrive later.
            await self._tasks.starts.abandon_shared(_submission(operation.message_id))
            session = await self.served(session.id) or session
        operation, loop = identified(operation), asyncio.get_running_loop()
        until = loop.time() + MOVE_WAIT
        while True:
            try:
                if isinstance(operation, Submit) and isinstance(session, DistantSession):
                    # It goes on also if the client is gone: a lost connection withdraws nothing.
                    send = partial(session.control.perform, operation, policy)
                    return await self._tasks.starts.share(_submission(operation.message_id), send)
                return await session.control.perform(operation, policy)
            except StoreError:
                served = await self.served(session.id)
                if served is None or served is session or loop.time() >= until:
                    raise
                session = served

    def cancel(self, session_id: str, operation: Cancel, policy: AccessPolicy = EVERYTHING) -> None:
        """Cancel, after what was asked of the session before; in one that is lost here, once it is served
        again."""
        session = self.serving(session_id)
        if session is not None and not session.feed.failed:
            if isinstance(session, DistantSession):
                operation = structs.replace(operation, known=session.work)
            session.control.cancel(operation, policy)
        elif session_id in self._recovering:
            self._tasks.starts.start_soon(self._cancel_later(session_id, operation, policy))

    async def _cancel_later(self, session_id: str, operation: Cancel, policy: AccessPolicy) -> None:
        session = await self.served(session_id)
        if session is not None:
            with suppress(AntiphonError):  # a notification is not answered
                await self.perform(session, operation, policy)


def _submission(message_id: str) -> Hashable:
    """Return the key of the task that sends a prompt to the owner of its session."""
    return "submit", message_id


def _advanced(session: AnySession) -> AnySession:
    """Let the queue of a session go on, if it is owned here now."""
    if isinstance(session, ServedSession):
        session.worker.advance()
    return session
