"""SessionRegistry: the sessions that are open in one server: make, open, fork, close, release.

A session is owned here (`ServedSession`) or, where several servers work on one store, owned by another server
and followed here (`DistantSession`, see `DistantSessions`). Each may become the other while clients are
attached to it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from antiphon.engine.events import Updated
from antiphon.engine.session import Session, forked
from antiphon.engine.snapshot import state_word
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.engine.turn import Cause
from antiphon.errors import (
    RequestError,
    ResourceNotFound,
    SessionClaimed,
    SessionUnknown,
    StaleWriter,
    TooLarge,
)
from antiphon.live.attachment_writer import AttachmentWriter
from antiphon.live.session import LiveSession
from antiphon.live.stored_session import read_session
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import OperationMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.server.access import EVERYTHING, AccessPolicy
from antiphon.server.clients.attachments import LAST_UPDATES, Attachments
from antiphon.server.connection import ClientConnection
from antiphon.server.control.operations import Rename
from antiphon.server.distant.elsewhere import Elsewhere, Glance, open_elsewhere
from antiphon.server.distant.session import AnySession, DistantSession
from antiphon.server.distant.sessions import DistantSessions, Here
from antiphon.server.ids import Wanted, new_id, session_id_of
from antiphon.server.session import ServedSession
from antiphon.server.session_facts import SessionStart, chosen_title
from antiphon.server.tasks import ServerTasks
from antiphon.server.worker import Worker
from antiphon.stores.base import RecordPatch, SessionRecord, Store

logger = logging.getLogger("antiphon.server")


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


async def record_of(store: Store, session_id: str) -> SessionRecord:
    record = await store.get(session_id)
    if record is None:
        raise ResourceNotFound("no such session", data={"sessionId": session_id})  # SESS-53, SESS-55
    return record


class SessionRegistry:
    def __init__(
        self,
        store: Store,
        make_worker: Callable[[ServedSession, SessionRegistry], Worker],
        *,
        agent_of: Callable[[SessionRecord], str],
        grace: float,
        most_sessions: int | None = None,
        changed: Callable[[str], None] = lambda _: None,
        opened: Callable[[ServedSession], None] = lambda _: None,
        elsewhere: Elsewhere | None = None,
        lost: Cause | None = None,
    ) -> None:
        """Make a registry without open sessions.

        make_worker: makes the worker of a session that is made or opened
        agent_of: returns the name of the agent of a session
        grace: seconds that the work of a session gets to end in
        most_sessions: how many may be open at a time
        changed: called with the id of a session whose entry in `session/list` may have changed, or is gone
        opened: called with a session that is open and owned here from now on, before anything happens in it
        elsewhere: the other servers that work on the same store, if there may be any
        lost: what cut a turn short that is open in the store
        """
        self._lost = lost
        self.store = store
        self.agent_of = agent_of
        self.changed = changed
        self._opened = opened
        self._make_worker = make_worker
        self._most_sessions = most_sessions
        self._places = 0
        """Sessions that are about to be open: requests that come at once must not exceed the limit
        together."""
        self.connections: set[ClientConnection] = set()
        """The clients that are connected."""
        self._grace = grace
        self._elsewhere = elsewhere
        self._sessions: dict[str, ServedSession] = {}
        self._open: dict[str, AsyncExitStack] = {}
        self._blocked: dict[str, asyncio.Event] = {}
        """The sessions that are being closed, or written to while they are not open: an open waits."""
        self._tasks = ServerTasks(grace=grace)
        self.attachments = Attachments(
            self.connections,
            self._tasks,
            find=self.find,
            serving=self.serving,
            left=lambda session_id: self.distant.leave_unused(session_id),
            moves=elsewhere is not None,
        )
        here = Here(self.find, self.open, self._once, self._read, self._serve, self.release, self.retire)
        self.distant = DistantSessions(
            store, elsewhere, here, self.attachments, self._tasks, clock=now, changed=changed
        )

    def find(self, session_id: str) -> ServedSession | None:
        """Return a session that is open and owned here."""
        return self._sessions.get(session_id)

    def serving(self, session_id: str) -> AnySession | None:
        """Return a session that is open here, wherever it is worked on."""
        return self.distant.serving(session_id)

    @property
    def sessions(self) -> list[ServedSession]:
        """The sessions that are open and owned here."""
        return list(self._sessions.values())

    def glance(self, session_id: str) -> Glance | None:
        """Return what lists show of a session that is open, here or at another server."""
        session = self.serving(session_id)
        if session is not None:
            return Glance(state_word(session.fold), len(session.feed.presence.clients()))
        return None if self._elsewhere is None else self._elsewhere.glance(session_id)

    async def is_open_elsewhere(self, session_id: str) -> bool:
        """Return whether another server owns a session."""
        return self._elsewhere is not None and not await self._elsewhere.is_free(session_id)

    # --- making ------------------------------------------------------------------------------------

    async def begin(self, wanted: Wanted, make: Callable[[], Awaitable[ServedSession]]) -> AnySession:
        """Return the session that is wanted. Asked again under an operation id, it is that of the first time;
        it is then made also for a client that is gone meanwhile. A failure leaves nothing behind that would
        prevent another try."""
        if read_meta(OperationMeta, wanted.meta).operation_id is None:
            return await make()
        id = session_id_of(wanted)

        async def open_or_make() -> AnySession:
            return await make() if await self.store.get(id) is None else await self.open(id)

        return await self._tasks.starts.share(("make", id), open_or_make)

    async def create(
        self, params: Wanted, meta: dict[str, Any], *, history: Sequence[Updated] = ()
    ) -> ServedSession:
        """Make a session. `meta` is kept with it from its beginning, `history` is what it begins with."""
        live = await LiveSession.create(
            self.store,
            session_id=session_id_of(params),
            cwd=params.cwd,
            additional_directories=params.additional_directories,
            clock=now,
            meta=meta,
            history=history,
        )
        session = await self._enter(live)
        session.new = True
        session.additional_directories = tuple(params.additional_directories)
        session.mcp_servers = tuple(params.mcp_servers)
        session.system_prompt = params.system_prompt
        news = (*session.fold.interrupt(), *session.worker.news())
        if news:
            session.emit(news)
            await live.durable()  # the answer says so
        session.start = SessionStart.of(session.fold)
        return session

    async def fork(self, params: v2.ForkSessionRequest, at: str | None) -> ServedSession:
        """Make a session that continues another one, open or kept, which stays as it is (SESS-52)."""
        source = await self._fork_source(params.session_id, at)
        meta = {"forkedFrom": {"sessionId": params.session_id, "messageId": at}}
        return await self.create(params, meta, history=source)

    async def _fork_source(self, session_id: str, at: str | None) -> list[Updated]:
        """Return what a fork begins with. The source may be open here, in the store, or open in another
        process."""
        source = self.find(session_id)
        if source is not None:
            made = _cut(source.fold, at)
            await source.live.durable()  # nothing is shown in the fork that the source could lose
            return made
        try:
            return _cut(await read_session(self.store, session_id), at)
        except SessionUnknown:
            raise ResourceNotFound("no such session", data={"sessionId": session_id}) from None

    async def create_subagent(
        self, parent: ServedSession, cwd: str, *, session_id: str | None = None
    ) -> ServedSession:
        """Make a session that works for another one. It is kept as any, and not listed."""
        about = {SUBAGENT_OF: parent.id}
        with self.opening():
            live = await LiveSession.create(
                self.store, session_id=session_id or new_id("sess"), cwd=cwd, clock=now, meta=dict(about)
            )
            await self.store.update(live.session_id, RecordPatch(meta=dict(about)))
            return await self._enter(live)

    async def _enter(self, live: LiveSession) -> ServedSession:
        stack = AsyncExitStack()
        await stack.enter_async_context(live)
        session = ServedSession(
            live, self.connections, lambda made: self._make_worker(made, self), grace=self._grace
        )
        self._sessions[live.session_id] = session
        self._open[live.session_id] = stack
        live.observe(
            changed=lambda: self.changed(session.id),
            failed=partial(self._failed, session),
        )
        self._opened(session)
        self.changed(session.id)
        try:
            await session.worker.open()
        except BaseException:
            if self._sessions.get(session.id) is session:
                del self._sessions[session.id], self._open[session.id]
                session.gone = True
                await stack.aclose()
            raise
        return session

    def _failed(self, session: ServedSession) -> None:
        """Put a session away whose store has failed, or whose claim another server has; it can be opened
        again later."""
        if self._elsewhere is None:
            self._tasks.ends.start_soon(self.release(session))
        else:
            self.distant.recover_soon(session)

    # --- opening -----------------------------------------------------------------------------------

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Hold a place while a session is made, or is read from the store. Raises `RequestError` where too
        many are open."""
        most = self._most_sessions
        if most is not None and len(self._sessions) + len(self.distant) + self._places >= most:
            data = {"reason": "limit", "limit": "sessions"}
            raise RequestError(TooLarge.code, f"{most} sessions are open, which is the limit here", data=data)
        self._places += 1
        try:
            yield
        finally:
            self._places -= 1

    async def open(self, session_id: str, *, voice: AttachmentWriter | None = None) -> AnySession:
        """Return a session that is open here, or open it from the store. A turn that was cut short by the end
        of an earlier process ends as interrupted (invariant 4).

        Where this call opens it, `voice` gets the replay while it is read, and is pinned to the session.
        """
        await self.wait_closed(session_id)
        session = self.serving(session_id)
        if session is None:
            session = await self._once(session_id, partial(self._reopen, session_id, voice))
        if isinstance(session, ServedSession):
            session.worker.used()
        return session

    async def _once(
        self, session_id: str, begin: Callable[[], Coroutine[Any, Any, AnySession]]
    ) -> AnySession:
        """Open a session by `begin`, once for all callers that ask for it meanwhile."""
        await self.wait_closed(session_id)
        return await self._tasks.starts.share(("open", session_id), begin)

    async def follow(self, session_id: str) -> AnySession:
        """Return a session that is open here, or follow it without owning it, even if no server does."""
        await self.wait_closed(session_id)
        return self.serving(session_id) or await self._once(session_id, partial(self._follow, session_id))

    async def _follow(self, session_id: str) -> DistantSession:
        with self.opening():
            return await self.distant.follow(await record_of(self.store, session_id), None)

    async def own(self, session_id: str) -> ServedSession:
        """Return a session that is owned here, or open it. Raises `RequestError` if another server has it."""
        session = await self.open(session_id)
        if isinstance(session, DistantSession):
            raise open_elsewhere(session_id)
        return session

    async def _reopen(self, session_id: str, voice: AttachmentWriter | None) -> AnySession:
        with self.opening():
            record = await record_of(self.store, session_id)
            if self._elsewhere is None or self._elsewhere.may_own(record):
                try:
                    live = await self._read(session_id, voice)
                except SessionClaimed as error:
                    if self._elsewhere is None:
                        raise open_elsewhere(session_id) from error
                else:
                    return await self._serve(live, voice)
            return await self.distant.follow(record, voice)

    async def _serve(self, live: LiveSession, voice: AttachmentWriter | None = None) -> ServedSession:
        session = await self._enter(live)
        # Nothing that was previewed changes by that. Clients of other servers may wait for their prompts.
        session.emit(session.fold.interrupt(attended=self._elsewhere is not None, cause=self._lost))
        if voice is not None:
            self.attachments.pin(voice, session, history=True)
        session.emit(session.worker.news())  # after the replay, which may have shown older news
        return session

    async def _read(self, session_id: str, voice: AttachmentWriter | None = None) -> LiveSession:
        preview = None if voice is None else voice.preview
        return await LiveSession.open(self.store, session_id, clock=now, preview=preview)

    @asynccontextmanager
    async def borrow(self, session_id: str) -> AsyncIterator[LiveSession]:
        """Open a session for a moment, to write something to it. One that is not open is not served by that;
        an open waits meanwhile."""
        await self.wait_closed(session_id)
        if session_id in self._sessions or self._tasks.starts.is_shared(("open", session_id)):
            yield (await self.own(session_id)).live
            return
        with self._block(session_id):
            await record_of(self.store, session_id)
            try:
                borrowed = await self._read(session_id)
            except SessionClaimed as error:
                raise open_elsewhere(session_id) from error
            async with borrowed as live:
                yield live

    async def rename(self, session_id: str, title: str, policy: AccessPolicy = EVERYTHING) -> None:
        """Set the title that a client chose, wherever the session is worked on."""
        if await self.is_open_elsewhere(session_id):
            session = await self.open(session_id)
            await self.distant.perform(session, Rename(title=title), policy)
        else:
            async with self.borrow(session_id) as live:
                live.emit([chosen_title(title)])
                await live.durable()

    @contextmanager
    def _block(self, session_id: str) -> Iterator[None]:
        """Let every open of a session wait until the end of the block, or of one that began before."""
        if session_id in self._blocked:
            yield
            return
        done = self._blocked[session_id] = asyncio.Event()
        try:
            yield
        finally:
            del self._blocked[session_id]
            done.set()

    async def set_up(self, session: AnySession, params: v2.ResumeSessionRequest) -> None:
        """Replace the setup of a session by that of a resume (SESS-10, SESS-28). A session whose worker is
        set up already stays as it is."""
        if isinstance(session, DistantSession) or session.worker.is_set_up:
            return
        session.additional_directories = tuple(params.additional_directories)
        session.mcp_servers = tuple(params.mcp_servers)
        if params.system_prompt is not None:
            session.system_prompt = params.system_prompt
        roots = RecordPatch(additional_directories=session.additional_directories)
        try:
            await self.store.update(session.id, roots)
        except StaleWriter:
            if self._elsewhere is None:
                raise
            logger.info("session %s was lost while it was set up", session.id)

    # --- closing -----------------------------------------------------------------------------------

    async def close(self, session: ServedSession) -> None:
        """Close a session: its work ends, and every client gets the last of it and is detached."""
        if self._sessions.get(session.id) is not session:
            return  # it was closed, or put away, meanwhile
        session.closing = True
        blocked = ExitStack()
        blocked.enter_context(self._block(session.id))  # now, and not when the task begins
        await self._tasks.ends.share(session, lambda: self._close(session, blocked))

    async def close_if_open(self, session_id: str, policy: AccessPolicy = EVERYTHING) -> None:
        """Close a session, wherever it is open."""
        session = self.find(session_id) or self.serving(session_id)
        if isinstance(session, ServedSession):
            await self.close(session)
        elif self._elsewhere is not None:
            await self._elsewhere.close(session_id, policy.credential)
            if session is not None:
                await self.distant.leave(session)

    async def _close(self, session: ServedSession, blocked: ExitStack) -> None:
        with blocked:
            try:
                await session.close()
            finally:
                await self.attachments.dismiss_all(session.id)
                await self.release(session)

    async def wait_closed(self, session_id: str) -> None:
        """Wait until a session that is being closed, or put away, is."""
        while session_id in self._blocked:
            await self._blocked[session_id].wait()

    async def release(self, session: ServedSession) -> None:
        """Put a session away; it can be opened again."""
        if self._sessions.get(session.id) is not session:
            return
        del self._sessions[session.id]
        self.changed(session.id)
        stack = self._open.pop(session.id)
        session.gone = True
        with self._block(session.id):
            await session.stop()
            await stack.aclose()
            if not session.live.failed:  # then its attachment notifies every client, or waits to be moved
                await self.attachments.clear(session.id)
            if self._elsewhere is not None and not session.live.failed:
                fold = session.fold
                waits = bool(fold.prompts.queued) and not fold.prompts.paused
                await self._elsewhere.released(session.id, fold.last_seq, closed=session.closing, waits=waits)

    def retire(self, subagent: ServedSession) -> None:
        """Put a subagent away whose work is done, once the clients that follow it have the last of it."""
        self._tasks.ends.start_soon(self._retire(subagent))

    async def _retire(self, subagent: ServedSession) -> None:
        if subagent.joining:
            await asyncio.wait(subagent.joining, timeout=LAST_UPDATES)
        await self.attachments.dismiss(subagent.clients(), subagent.id)
        await self.release(subagent)

    async def aclose(self) -> None:
        """Put every session away, and wait for everything that was begun."""
        await self._tasks.starts.aclose()
        for session in self.sessions:
            session.worker.interrupt()  # all of them at once: each has the same time to end
        await self._tasks.ends.drain()
        for session in self.sessions:
            await self.release(session)
        for distant in self.distant.sessions:
            await self.distant.leave(distant)
        await self._tasks.ends.drain()
        await self._tasks.ends.aclose()
        self._tasks.begin()  # a server may be used again


def _cut(fold: Session, at: str | None) -> list[Updated]:
    updates = forked(fold, at=at)
    if updates is None:
        raise ResourceNotFound("no such message", data={"reason": "unknown_message_id", "messageId": at})
    return [Updated.of(update) for update in updates]
