"""SessionRegistry: the sessions that are open in one server: make, open, fork, attach, close, release.

A session is owned here (`ServedSession`) or, where several servers work on one store, owned by another server
and followed here (`DistantSession`). Each may become the other while clients are attached to it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

from antiphon.engine.events import Updated
from antiphon.engine.questions import Question
from antiphon.engine.session import Session, forked
from antiphon.engine.snapshot import state_word
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import (
    AntiphonError,
    RequestCancelled,
    RequestError,
    ResourceNotFound,
    SessionClaimed,
    SessionUnknown,
    StaleWriter,
    StoreError,
    TooLarge,
)
from antiphon.live.attachment_writer import MOVE_WAIT, AttachmentWriter
from antiphon.live.followed_session import FollowedSession
from antiphon.live.session import LiveSession
from antiphon.live.stored_session import read_session
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import OperationMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.server.access import EVERYTHING, AccessPolicy
from antiphon.server.connection import ClientConnection, ClientInfo
from antiphon.server.control.control import Control
from antiphon.server.control.operations import Cancel, Operation, Rename, Submit, identified
from antiphon.server.distant.elsewhere import Elsewhere, Glance
from antiphon.server.distant.session import DistantSession
from antiphon.server.ids import new_id
from antiphon.server.session import ServedSession
from antiphon.server.session_facts import SessionStart, choose_title
from antiphon.server.tasks import Tasks
from antiphon.server.worker import Worker
from antiphon.stores.base import RecordPatch, SessionRecord, Store

logger = logging.getLogger("antiphon.server")

LAST_UPDATES = 2.0
"""Seconds that a client gets to read the last updates of a session that is closed, or to join a subagent
whose work is over already."""

RETRY = 0.5
"""Seconds between two attempts to open a session again whose store has failed."""

Wanted = v2.NewSessionRequest | v2.ForkSessionRequest
AnySession = ServedSession | DistantSession


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def session_id_of(wanted: Wanted) -> str:
    """Return the id of a new session. Under an operation id it is made from that: so the store alone decides
    whether the session is there, also after a restart."""
    operation_id = read_meta(OperationMeta, wanted.meta).operation_id
    if operation_id is None:
        return new_id("sess")
    source = wanted.session_id if isinstance(wanted, v2.ForkSessionRequest) else ""
    named = hashlib.sha256(f"{source}\n{operation_id}".encode())
    return f"sess_{named.hexdigest()[:24]}"


async def record_of(store: Store, session_id: str) -> SessionRecord:
    record = await store.get(session_id)
    if record is None:
        raise ResourceNotFound("no such session", data={"sessionId": session_id})  # SESS-53, SESS-55
    return record


def open_elsewhere(session_id: str) -> RequestError:
    return RequestError(
        AntiphonError.code, "The session is open in another process", data={"sessionId": session_id}
    )


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
        elsewhere: Elsewhere | None = None,
    ) -> None:
        """Make a registry without open sessions.

        make_worker: makes the worker of a session that is made or opened
        agent_of: returns the name of the agent of a session
        grace: seconds that the work of a session gets to end in
        most_sessions: how many may be open at a time
        changed: called with the id of a session whose entry in `session/list` may have changed, or is gone
        elsewhere: the other servers that work on the same store, if there may be any
        """
        self.store = store
        self.agent_of = agent_of
        self.changed = changed
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
        self._distant: dict[str, DistantSession] = {}
        self._open: dict[str, AsyncExitStack] = {}
        self._blocked: dict[str, asyncio.Event] = {}
        """The sessions that are being closed, or written to while they are not open: an open waits."""
        self._recovering: dict[str, asyncio.Task[None]] = {}
        """The sessions that were lost here and are about to be served again."""
        self._begin_life()

    def _begin_life(self) -> None:
        self._starts = Tasks("the server", grace=self._grace)
        """What makes and opens sessions. It is cancelled with the server."""
        self._ends = Tasks("the server", grace=self._grace)
        """What closes sessions and puts them away. It is waited for."""

    def find(self, session_id: str) -> ServedSession | None:
        """Return a session that is open and owned here."""
        return self._sessions.get(session_id)

    def serving(self, session_id: str) -> AnySession | None:
        """Return a session that is open here, wherever it is worked on. While it is being taken over, it is
        the distant one, which its clients follow."""
        return self._distant.get(session_id) or self._sessions.get(session_id)

    async def served(self, session_id: str) -> AnySession | None:
        """Return a session that is open here. One that was lost is waited for until it is served again."""
        while (recovering := self._recovering.get(session_id)) is not None:
            await asyncio.wait([recovering])
        return self.serving(session_id)

    @property
    def sessions(self) -> list[ServedSession]:
        """The sessions that are open and owned here."""
        return list(self._sessions.values())

    @property
    def distant(self) -> list[DistantSession]:
        """The sessions that are followed here and owned by another server."""
        return list(self._distant.values())

    def glance(self, session_id: str) -> Glance | None:
        """Return what lists show of a session that is open, here or at another server."""
        session = self.serving(session_id)
        if session is not None:
            return Glance(state_word(session.fold), len(session.feed.presence.clients()))
        return None if self._elsewhere is None else self._elsewhere.glance(session_id)

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

        return await self._starts.share(("make", id), open_or_make)

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
            self._ends.start_soon(self.release(session))
            return
        task = self._recovering[session.id] = self._ends.start_soon(self._recover(session))

        def recovered(_: object) -> None:
            if self._recovering.get(session.id) is task:
                del self._recovering[session.id]

        task.add_done_callback(recovered)

    # --- opening -----------------------------------------------------------------------------------

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Hold a place while a session is made, or is read from the store. Raises `RequestError` where too
        many are open."""
        most = self._most_sessions
        if most is not None and len(self._sessions) + len(self._distant) + self._places >= most:
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
            begin = partial(self._reopen, session_id, voice)
            session = await self._starts.share(("open", session_id), begin)
        if isinstance(session, ServedSession):
            session.worker.used()
        return session

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
            return await self._follow(record, voice)

    async def _serve(self, live: LiveSession, voice: AttachmentWriter | None) -> ServedSession:
        session = await self._enter(live)
        # Nothing that was previewed changes by that. Clients of other servers may wait for their prompts.
        session.emit(session.fold.interrupt(attended=self._elsewhere is not None))
        if voice is not None:
            self.pin(voice, session, history=True)
        session.emit(session.worker.news())  # after the replay, which may have shown older news
        return session

    async def _read(self, session_id: str, voice: AttachmentWriter | None) -> LiveSession:
        preview = None if voice is None else voice.preview
        return await LiveSession.open(self.store, session_id, clock=now, preview=preview)

    # --- sessions of other servers -----------------------------------------------------------------

    async def _follow(self, record: SessionRecord, voice: AttachmentWriter | None) -> DistantSession:
        assert self._elsewhere is not None
        id = record.session_id
        preview = None if voice is None else voice.preview
        feed = await FollowedSession.open(self.store, id, clock=now, preview=preview)

        async def take_over() -> Control:
            return (await self.take_over(id)).control

        session = DistantSession(feed, self._elsewhere.control(feed, record, take_over), self.connections)
        feed.observe(changed=lambda: self.changed(id), failed=lambda: self._leave_soon(session))
        if voice is not None:
            self.pin(voice, session, history=True)  # before more is read than was previewed
        await session.begin()
        self._distant[id] = session
        self.changed(id)
        return session

    async def take_over(self, session_id: str) -> AnySession:
        """Own a session whose owner is gone: the turn that it was in ends as interrupted, and its clients
        here stay attached. If another server was faster, it stays distant; if it is not followed here,
        `SessionClaimed` is raised."""
        await self.wait_closed(session_id)
        return await self._starts.share(("open", session_id), partial(self._take_over, session_id))

    async def _take_over(self, session_id: str) -> AnySession:
        assert self._elsewhere is not None
        owned, distant = self.find(session_id), self._distant.get(session_id)
        if owned is not None:
            return owned  # it was taken over since the caller asked for that
        try:
            live = await self._read(session_id, None)
        except SessionClaimed:
            if distant is None:
                raise
            return distant
        self._elsewhere.taken_over(session_id)
        session = await self._serve(live, None)
        if session.live.failed:
            if distant is None:
                raise StoreError(f"session {session_id} was lost while it was taken over")
            return distant
        if distant is not None:
            await self._replace(distant, session)
        session.worker.advance()
        return session

    def lose(self, session_id: str) -> None:
        """Follow a session that another server has taken over from this one."""
        session = self.find(session_id)
        if session is not None:
            session.live.lose()

    async def _recover(self, failed: ServedSession) -> None:
        """Serve a session again, from its journal, that could not be worked on here any more. Its clients
        stay attached."""
        await self.release(failed)
        with suppress(TimeoutError):
            async with asyncio.timeout(MOVE_WAIT):
                while True:
                    try:
                        session = await self.open(failed.id)
                        break
                    except (StoreError, RequestError) as error:
                        logger.warning("session %s cannot be opened again yet: %s", failed.id, error)
                    except SessionUnknown:
                        return
                    await asyncio.sleep(RETRY)
                self._move(failed.attached(), session)
                self._starts.start_soon(self._submit_again(failed, _advanced(session)))

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
            if entry.settled:  # it was cancelled, and neither that nor the prompt was committed
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

    async def perform(
        self, session: AnySession, operation: Operation, policy: AccessPolicy = EVERYTHING
    ) -> Any:
        """Perform an operation on a session. If the session is lost here meanwhile, perform it where it is
        served then; the operation is known by its id, so it is done once."""
        if self._elsewhere is None:
            return await session.control.perform(operation, policy)
        operation, loop = identified(operation), asyncio.get_running_loop()
        until = loop.time() + MOVE_WAIT
        while True:
            try:
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
            session.control.cancel(operation, policy)
        elif session_id in self._recovering:
            self._starts.start_soon(self._cancel_later(session_id, operation, policy))

    async def _cancel_later(self, session_id: str, operation: Cancel, policy: AccessPolicy) -> None:
        session = await self.served(session_id)
        if session is not None:
            with suppress(AntiphonError):  # a notification is not answered
                await self.perform(session, operation, policy)

    async def _replace(self, distant: DistantSession, session: ServedSession) -> None:
        self._distant.pop(distant.id, None)
        self._move(distant.attached(), session)
        await distant.stop()

    def _move(self, voices: Sequence[AttachmentWriter], session: AnySession) -> None:
        for voice in voices:
            voice.move_to(session.feed, session.control.answer)

    def _leave_soon(self, session: DistantSession) -> None:
        self._ends.start_soon(self.leave(session))

    async def leave(self, session: DistantSession) -> None:
        """Follow a session of another server no more: it was deleted, or no client is left here."""
        if self._distant.get(session.id) is not session:
            return
        del self._distant[session.id]
        await session.stop()
        await asyncio.gather(*(self.detach(client, session.id) for client in tuple(self.connections)))
        self.changed(session.id)

    async def closed_elsewhere(self, session: DistantSession, seq: int) -> None:
        """Detach the clients of a session that was closed for all, once they have its last event `seq`."""
        with suppress(TimeoutError, StoreError):
            async with asyncio.timeout(LAST_UPDATES):
                await session.feed.durable(seq)
        await asyncio.gather(*(self._dismiss(client, session.id) for client in tuple(self.connections)))
        await self.leave(session)

    @asynccontextmanager
    async def borrow(self, session_id: str) -> AsyncIterator[LiveSession]:
        """Open a session for a moment, to write something to it. One that is not open is not served by that;
        an open waits meanwhile."""
        await self.wait_closed(session_id)
        if session_id in self._sessions or self._starts.is_shared(("open", session_id)):
            yield (await self.own(session_id)).live
            return
        with self._block(session_id):
            await record_of(self.store, session_id)
            try:
                borrowed = await self._read(session_id, None)
            except SessionClaimed as error:
                raise open_elsewhere(session_id) from error
            async with borrowed as live:
                yield live

    async def rename(self, session_id: str, title: str, policy: AccessPolicy = EVERYTHING) -> None:
        """Set the title that a client chose, wherever the session is worked on."""
        if self._elsewhere is None or await self._elsewhere.is_free(session_id):
            async with self.borrow(session_id) as live:
                await choose_title(live, title)
        else:
            session = await self.open(session_id)
            await self.perform(session, Rename(title=title), policy)

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

    # --- attachments -------------------------------------------------------------------------------

    def new_voice(
        self, connection: ClientConnection, session_id: str, info: ClientInfo | None = None
    ) -> AttachmentWriter:
        return connection.new_voice(session_id, info, partial(self._is_asked, connection, session_id))

    def pin(self, voice: AttachmentWriter, session: AnySession, **where: Any) -> None:
        """Bind an attachment to a session (`AttachmentWriter.pin`). Where several servers work on the store,
        the session may move to another one while the client stays."""
        voice.pin(session.feed, session.control.answer, moves=self._elsewhere is not None, **where)

    def _is_asked(self, connection: ClientConnection, session_id: str, question: Question) -> bool:
        session = self.serving(session_id)
        return session is not None and connection.policy.answers(
            session, question, client_id=connection.client_id
        )

    def attached(self, connection: ClientConnection, session_id: str) -> tuple[AttachmentWriter, AnySession]:
        """Return a client's attachment to a session, and the session. Raises `ResourceNotFound`."""
        voice, session = connection.voices.get(session_id), self.serving(session_id)
        if voice is None or session is None or session.closing or not voice.follows(session.feed):
            # RPC-25, SESS-56: a session that was not opened here, or is being closed, is not active here.
            raise ResourceNotFound("no such session is active here", data={"sessionId": session_id})
        return voice, session

    def closing_voice(self, connection: ClientConnection, session_id: str) -> AttachmentWriter | None:
        """Return a client's attachment to a session that is being closed."""
        session = self.find(session_id)
        return connection.voices.get(session_id) if session is not None and session.closing else None

    def has_others(self, connection: ClientConnection, session_id: str) -> bool:
        """Return whether clients of other connections are attached to a session, here or elsewhere."""
        session = self.serving(session_id)
        if session is not None:
            presence = session.feed.presence
            if len(presence.clients()) > len(presence.local_clients()):
                return True
        return any(other is not connection and other.follows(session_id) for other in self.connections)

    async def detach(self, connection: ClientConnection, *session_ids: str, closed: bool = False) -> None:
        """Detach a client from sessions, which are `closed` or go on without it. Its prompts are answered
        first: a client that is not attached gets no answer from its attachment."""
        async with connection.moving:  # an attachment that is being moved is left where it arrives
            for session_id in self._with_subagents(connection, session_ids):
                voice = connection.voices.pop(session_id, None)
                if voice is not None:
                    session = self.find(session_id)
                    if session is not None:
                        session.worker.client_left()
                    voice.part(closed=closed)
                    await voice.stop()
                distant = self._distant.get(session_id)
                if distant is not None and not distant.clients():
                    self._leave_soon(distant)

    async def detach_all(self, connection: ClientConnection) -> None:
        """Detach a client whose connection has ended. It is detached also if the caller is cancelled."""
        await self._ends.share(connection, lambda: self.detach(connection, *connection.voices))

    def _with_subagents(self, connection: ClientConnection, session_ids: Sequence[str]) -> list[str]:
        """Return these sessions and, of those that this client follows, the ones that work for them."""
        found = list(session_ids)
        for parent_id in found:
            for session_id in connection.voices:
                session = self.find(session_id)
                if session is not None and session.parent is not None and session.parent.id == parent_id:
                    found.append(session_id)
        return found

    async def _dismiss(self, connection: ClientConnection, session_id: str) -> None:
        """Detach a client from a session that is over, once it has the last of it, if it reads."""
        voice = connection.voices.get(session_id)
        if voice is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_UPDATES):
                    await voice.caught_up()  # SESS-40: the last updates come before the answer
            await self.detach(connection, session_id, closed=True)

    # --- closing -----------------------------------------------------------------------------------

    async def close(self, session: ServedSession) -> None:
        """Close a session: its work ends, and every client gets the last of it and is detached."""
        if self._sessions.get(session.id) is not session:
            return  # it was closed, or put away, meanwhile
        session.closing = True
        blocked = ExitStack()
        blocked.enter_context(self._block(session.id))  # now, and not when the task begins
        await self._ends.share(session, lambda: self._close(session, blocked))

    async def close_if_open(self, session_id: str, policy: AccessPolicy = EVERYTHING) -> None:
        """Close a session, wherever it is open."""
        session = self.find(session_id) or self.serving(session_id)
        if isinstance(session, ServedSession):
            await self.close(session)
        elif self._elsewhere is not None:
            await self._elsewhere.close(session_id, policy.credential)
            if session is not None:
                await self.leave(session)

    async def _close(self, session: ServedSession, blocked: ExitStack) -> None:
        with blocked:
            try:
                await session.close()
            finally:
                clients = tuple(self.connections)
                await asyncio.gather(*(self._dismiss(client, session.id) for client in clients))
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
                await asyncio.gather(*(self.detach(client, session.id) for client in tuple(self.connections)))
            if self._elsewhere is not None and not session.live.failed:
                fold = session.fold
                waits = bool(fold.prompts.queued) and not fold.prompts.paused
                await self._elsewhere.released(session.id, fold.last_seq, closed=session.closing, waits=waits)

    def retire(self, subagent: ServedSession) -> None:
        """Put a subagent away whose work is done, once the clients that follow it have the last of it."""
        self._ends.start_soon(self._retire(subagent))

    async def _retire(self, subagent: ServedSession) -> None:
        if subagent.joining:
            await asyncio.wait(subagent.joining, timeout=LAST_UPDATES)
        await asyncio.gather(*(self._dismiss(client, subagent.id) for client in subagent.clients()))
        await self.release(subagent)

    async def aclose(self) -> None:
        """Put every session away, and wait for everything that was begun."""
        await self._starts.aclose()
        for session in self.sessions:
            session.worker.interrupt()  # all of them at once: each has the same time to end
        await self._ends.drain()
        for session in self.sessions:
            await self.release(session)
        for distant in self.distant:
            await self.leave(distant)
        await self._ends.drain()
        await self._ends.aclose()
        self._begin_life()  # a server may be used again


def _advanced(session: AnySession) -> AnySession:
    """Let the queue of a session go on, if it is owned here now."""
    if isinstance(session, ServedSession):
        session.worker.advance()
    return session


def _cut(fold: Session, at: str | None) -> list[Updated]:
    updates = forked(fold, at=at)
    if updates is None:
        raise ResourceNotFound("no such message", data={"reason": "unknown_message_id", "messageId": at})
    return [Updated.of(update) for update in updates]
