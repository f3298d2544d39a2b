"""Agent: a name, a prompt handler and a store; it serves as many clients and sessions as there are."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from antiphon.agent import forking
from antiphon.agent.annotation_hook import AnnotationHook
from antiphon.agent.beginning import Beginning, session_id_of
from antiphon.agent.declaring import Declaring
from antiphon.agent.extending import Extending
from antiphon.agent.keeping import mark_archived
from antiphon.agent.link import Link
from antiphon.agent.logins import Logins, run_flow
from antiphon.agent.permits import EVERYTHING, Permit
from antiphon.agent.session import GRACE, AgentSession, Handler, new_id
from antiphon.agent.session_start import SessionStart
from antiphon.agent.subagents import retire
from antiphon.agent.system_prompts import modes, read_system_prompt
from antiphon.agent.turn import AgentTurn
from antiphon.engine.events import Delivery
from antiphon.engine.snapshot import state_word
from antiphon.engine.subagents import SUBAGENT_OF
from antiphon.errors import (
    AntiphonError,
    LocalError,
    RequestError,
    ResourceNotFound,
    SessionClaimed,
    StdioClosed,
    one_line,
)
from antiphon.live.session import LiveSession
from antiphon.live.voice import Voice
from antiphon.schema import v2
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.version import EXTRAS
from antiphon.stores.base import RecordPatch, SessionRecord, Store
from antiphon.stores.memory import MemoryStore
from antiphon.transports.base import Transport
from antiphon.transports.loop import run_until_stopped
from antiphon.transports.stdio import StdioTransport

CONTENT: dict[str, type] = {
    "image": v2.ImageContent,
    "audio": v2.AudioContent,
    "embedded_context": v2.EmbeddedResource,
}
"""What an agent may accept in prompts beside text and links, by the names of its capabilities."""
ALWAYS: tuple[type, ...] = (v2.TextContent, v2.ResourceLink)
"""What every agent accepts in prompts (CONT-02)."""

SessionHandler = Callable[[AgentSession], Coroutine[Any, Any, None]]


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _read_address(address: str) -> tuple[str, int, str]:
    parts = urlsplit(address)
    try:
        if parts.scheme == "ws" and parts.hostname is not None:
            return parts.hostname, parts.port or 0, parts.path or "/"
    except ValueError:
        pass  # a port that is none
    raise LocalError(f"{address!r} is no address to serve at: it looks like ws://127.0.0.1:9000")


ALONE = (Delivery.QUEUE, Delivery.STEER, Delivery.INTERRUPT)
"""The deliveries that an agent carries out itself."""


class Agent(Declaring, Logins, Extending, AnnotationHook):
    """`@agent.on_prompt` gives it its work, `agent.run()` serves an editor over stdio.

    Sessions are kept in memory unless a store is given.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        store: Store | None = None,
        busy: str = Delivery.QUEUE,
        turn_complete: bool = False,
        accepts: Collection[str] = (),
        login_required: bool = True,
        system_prompt: bool | str = False,
        mcp_over_acp: bool = False,
        stop_grace: float = GRACE,
    ) -> None:
        """`busy` is what a plain prompt does while the session works: `queue`, `steer` or `interrupt`.
        `turn_complete` sends that signal to every v1 client, not only to those that ask for it. `accepts`
        names what prompts may hold beside text and links: `image`, `audio`, `embedded_context`.
        `login_required`: where a login is offered, nothing is done for who has not logged in.
        `system_prompt`: clients may give one, to be added to the agent's own or, with `override`, in its
        place. `mcp_over_acp`: clients may offer MCP servers of their own over their connection.
        `stop_grace`: seconds that handlers get to end in when their session or the agent ends."""
        super().__init__()
        Logins.__init__(self, login_required=login_required)
        Extending.__init__(self)
        AnnotationHook.__init__(self)
        self.name = name
        self.version = version
        self.busy = self._checked_busy(busy)
        self.turn_complete = turn_complete
        unknown = set(accepts) - set(CONTENT)
        if unknown:
            raise LocalError(f"an agent cannot accept {', '.join(sorted(unknown))}")
        self.accepts = frozenset(accepts)
        self.system_prompts = modes(system_prompt)
        self.mcp_over_acp = mcp_over_acp
        self.stop_grace = stop_grace
        self.mcp_kinds = frozenset({"stdio", "http"})
        """Which MCP servers of its own machine, or that can be reached from there, a session may be given."""
        self.takes_directories = True
        """Whether a session may have further roots."""
        self.announces: dict[str, Any] = {}
        """What is said in the `_meta` of the capabilities: which extensions it has, under names of yours."""
        self.offers: dict[str, Any] = {}
        """What is said beside the rest under `_meta["antiphon"]` of the capabilities."""
        self.extras = EXTRAS
        """What clients may ask for beyond their version, and get."""
        self.accepted: tuple[type, ...] = (*ALWAYS, *(CONTENT[name] for name in accepts))
        self.beginning = Beginning(self)
        self._links: set[Link] = set()
        self.store: Store = MemoryStore() if store is None else store
        self._own_store = store is None
        self._ended = False
        """Whether its store is closed, which was given for one life."""
        self._handler: Handler | None = None
        self._on_session: SessionHandler | None = None
        self._sessions: dict[str, AgentSession] = {}
        self._opening: dict[str, asyncio.Task[AgentSession]] = {}
        self._open: dict[str, AsyncExitStack] = {}
        self._lives = 0
        self._leaving: set[asyncio.Task[None]] = set()
        self._closing: dict[str, asyncio.Event] = {}
        """The sessions that are being closed, or noted in: who opens one of them waits."""
        self._closes: dict[AgentSession, asyncio.Task[None]] = {}
        """The task that closes each of them; every client that asks for the close waits for it."""

    def _checked_busy(self, busy: str) -> Delivery:
        """What a plain prompt does while the session works. Raises `LocalError` for anything else."""
        if busy not in ALONE:
            raise LocalError(f"busy must be one of {', '.join(ALONE)}, got {busy!r}")
        return Delivery(busy)

    def on_prompt(self, handler: Handler) -> Handler:
        """Run this for every prompt. Its return ends the turn; a stop reason it returns is reported."""
        if self._handler is not None:
            raise LocalError("an agent has one prompt handler")
        self._handler = handler
        return handler

    def on_session(self, handler: SessionHandler) -> SessionHandler:
        """Run this for every new session, once its client knows of it."""
        if self._on_session is not None:
            raise LocalError("an agent has one session handler")
        self._on_session = handler
        return handler

    def opened(self, session: AgentSession) -> None:
        """A new session's client has been answered; perhaps not for the first time."""
        new, session.new = session.new, False
        if new and self._on_session is not None:
            session.soon(self._on_session(session))

    # --- serving -----------------------------------------------------------------------------------

    def run(self, address: str | None = None) -> None:
        """Serve stdin and stdout until the client closes them; or, at a `ws://` address, whoever comes.
        Started for a login in a terminal, it does that instead."""
        flow = self.terminal_flow(sys.argv[1:])
        if flow is not None:
            run_flow(flow)
        serving = self._run_stdio() if address is None else self._run_websocket(address)
        try:
            run_until_stopped(serving, grace=self.stop_grace)
        except StdioClosed as error:
            sys.exit(f"{self.name}: {error}")

    async def _run_stdio(self) -> None:
        async with self.serving():
            await self.serve(await StdioTransport.open())

    async def _run_websocket(self, address: str) -> None:
        host, port, path = _read_address(address)
        from antiphon.remote.websocket_server import websocket_server

        async with self.serving():
            try:
                async with websocket_server(self.serve, host, port, path=path) as server:
                    sys.stderr.write(f"serving at ws://{host}:{server.port}{path}\n")
                    await asyncio.Event().wait()
            except OSError as error:
                raise LocalError(f"cannot serve at {address}: {error.strerror or error}") from error

    async def serve(self, transport: Transport, permit: Permit = EVERYTHING) -> None:
        """Serve one client until it is gone; call it for each, inside `serving`. `permit` is what it may
        do."""
        link = Link(self, transport, permit)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Agent]:
        """The agent's life: at its end every session is put away, in the store. Lives may overlap.

        A store that was given is closed then, and the agent cannot be served again; in the memory of its own
        the sessions stay, and another life finds them.
        """
        if self._ended:
            raise LocalError("this agent's store was closed when it was last served: make another `Agent`")
        self._lives += 1
        try:
            yield self
        finally:
            self._lives -= 1
            if not self._lives:
                await self.beginning.aclose()
                if self._closes:
                    await asyncio.wait(self._closes.values())
                self._ended = not self._own_store
                for session in self._sessions.values():
                    session.interrupt()  # all of them at once: each has the same time to end
                for session in tuple(self._sessions.values()):
                    await self.release(session)
                if self._leaving:
                    await asyncio.wait(self._leaving)
                if self._ended:
                    await self.store.aclose()

    # --- sessions ----------------------------------------------------------------------------------

    def find(self, session_id: str) -> AgentSession | None:
        """A session that is live here."""
        return self._sessions.get(session_id)

    def accepted_in(self, session: AgentSession) -> tuple[type, ...]:
        """The types of content that prompts of a session may hold."""
        return self.accepted

    @property
    def may_take_mcp_over_acp(self) -> bool:
        """Whether a client's own MCP servers are not refused at once."""
        return self.mcp_over_acp

    def told_of(self, record: SessionRecord) -> dict[str, Any]:
        """What a list says of a session under our own key; its state and its clients while it is open."""
        told: dict[str, Any] = {"agent": self.name}
        session = self.find(record.session_id)
        if session is not None:
            told["state"] = state_word(session.fold)
            told["clients"] = len(session.live.presence.clients())
        if record.fault is not None:
            told["fault"] = {"kind": str(record.fault.kind), "found": one_line(record.fault.found)}
        return told

    def noticed(self, session_id: str) -> None:
        """What a list says of a session may be something else now, or it is in none any more."""

    async def create(self, params: v2.NewSessionRequest, *, maker: Link | None = None) -> AgentSession:
        """Make a new session. `maker` is the client that asked for it."""
        live = await LiveSession.create(
            self.store,
            session_id=session_id_of(params),
            cwd=params.cwd,
            additional_directories=params.additional_directories,
            clock=now,
            meta=self.about(params),
        )
        return await self._begin(live, params)

    def about(self, params: v2.NewSessionRequest) -> dict[str, Any]:
        """What is kept with a session from its first moment on."""
        return {}

    async def _begin(
        self, live: LiveSession, params: v2.NewSessionRequest | v2.ForkSessionRequest
    ) -> AgentSession:
        session = await self._enter(live)
        session.new = True
        session.additional_directories = tuple(params.additional_directories)
        session.mcp_servers = tuple(params.mcp_servers)
        if params.system_prompt is not None:
            session.system_prompt = read_system_prompt(params.system_prompt)
        news = (*session.fold.interrupt(), *self.news(session.fold))
        if news:
            session.emit(news)
            await live.durable()  # the answer tells of it
        session.start = SessionStart.of(session.fold)
        return session

    async def fork(
        self, params: v2.ForkSessionRequest, *, at: str | None = None, maker: Link | None = None
    ) -> AgentSession:
        """A new session that goes on from another one, live or kept, which is not touched: from where it was
        last idle, or right after the message `at`, also one of the open turn. `maker` is the client that
        asked for it."""
        source = await forking.source(self, params.session_id, at)
        live = await LiveSession.create(
            self.store,
            session_id=session_id_of(params),
            cwd=params.cwd,
            additional_directories=params.additional_directories,
            clock=now,
            meta={"forkedFrom": {"sessionId": params.session_id, "messageId": at}},
            history=source,
        )
        return await self._begin(live, params)

    async def create_subagent(
        self, parent: AgentSession, cwd: str, *, session_id: str | None = None
    ) -> AgentSession:
        """A session that works for another one. It is kept as any, and not listed."""
        about = {SUBAGENT_OF: parent.id}
        live = await LiveSession.create(
            self.store, session_id=session_id or new_id("sess"), cwd=cwd, clock=now, meta=dict(about)
        )
        await self.store.update(live.session_id, RecordPatch(meta=dict(about)))
        return await self._enter(live)

    async def archive(self, session_id: str) -> None:
        """Hide a session from the usual list; work in it ends, as by a close (SESS-53)."""
        session = self.find(session_id)
        if session is not None:
            await self.close(session)
        await mark_archived(self.store, session_id, archived=True)
        self.noticed(session_id)

    async def unarchive(self, session_id: str) -> None:
        await mark_archived(self.store, session_id, archived=False)
        self.noticed(session_id)

    async def set_up(self, session: AgentSession, params: v2.ResumeSessionRequest) -> None:
        """What a client gives on resume is the whole of it, never added to what was (SESS-10, SESS-28)."""
        session.additional_directories = tuple(params.additional_directories)
        session.mcp_servers = tuple(params.mcp_servers)
        if params.system_prompt is not None:
            session.system_prompt = read_system_prompt(params.system_prompt)
        roots = RecordPatch(additional_directories=session.additional_directories)
        await self.store.update(session.id, roots)

    def others(self, link: Link, session_id: str) -> bool:
        """Whether clients of other connections follow a session."""
        return any(other is not link and other.follows(session_id) for other in self._links)

    async def close(self, session: AgentSession) -> None:
        """`session/close`: work ends, everyone gets the last of it and leaves."""
        if self._sessions.get(session.id) is not session:
            return  # it was closed, or put away, meanwhile
        if session not in self._closes:
            session.closing = True
            closed = self._closing.setdefault(session.id, asyncio.Event())
            task = asyncio.get_running_loop().create_task(self._close(session, closed))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait
            self._closes[session] = task
        # It is closed once, for all who ask, and also where who asked first is gone meanwhile.
        await asyncio.shield(self._closes[session])

    async def _close(self, session: AgentSession, closed: asyncio.Event) -> None:
        try:
            try:
                await session.close()
            finally:
                await asyncio.gather(*(link.dismiss(session.id) for link in tuple(self._links)))
                await self.release(session)
        finally:
            del self._closes[session]
            self._closing.pop(session.id, None)
            closed.set()

    async def put_away(self, session_id: str) -> None:
        """Wait until a session that is being closed, or put away, is."""
        while session_id in self._closing:
            await self._closing[session_id].wait()

    async def open(self, session_id: str, *, voice: Voice | None = None) -> AgentSession:
        """A session from the store; one that is live already is that one. A turn that was cut short by the
        end of an earlier process ends as interrupted (invariant 4).

        Where this call opens it, `voice` gets the replay while it is read, and is pinned to the session.
        """
        await self.put_away(session_id)
        session = self.find(session_id)
        if session is not None:
            return session
        task = self._opening.get(session_id)
        if task is None:
            task = self._opening[session_id] = asyncio.get_running_loop().create_task(
                self._reopen(session_id, voice)
            )
            task.add_done_callback(lambda _: self._opening.pop(session_id, None))
        return await asyncio.shield(task)

    @asynccontextmanager
    async def aside(self, session_id: str) -> AsyncIterator[LiveSession]:
        """A session for a moment, to note something in it: one that is not open stays so, and who opens it
        meanwhile waits."""
        await self.put_away(session_id)
        if session_id in self._sessions or session_id in self._opening:
            yield (await self.open(session_id)).live
            return
        done = self._closing[session_id] = asyncio.Event()
        try:
            async with await self._bring_back(session_id, None) as live:
                yield live
        finally:
            del self._closing[session_id]
            done.set()

    async def _bring_back(self, session_id: str, voice: Voice | None) -> LiveSession:
        if await self.store.get(session_id) is None:
            raise ResourceNotFound("no such session", data={"sessionId": session_id})
        try:
            preview = None if voice is None else voice.preview
            return await LiveSession.open(self.store, session_id, clock=now, preview=preview)
        except SessionClaimed as error:
            raise RequestError(
                AntiphonError.code, "The session is open in another process", data={"sessionId": session_id}
            ) from error

    async def _reopen(self, session_id: str, voice: Voice | None) -> AgentSession:
        live = await self._bring_back(session_id, voice)
        session = await self._enter(live)
        session.emit(session.fold.interrupt())  # nothing that was shown ahead changes by that
        if voice is not None:
            voice.pin(live, session.heard, history=True)
        session.emit(self.news(session.fold))  # behind the replay, which may have shown what was before
        return session

    async def _enter(self, live: LiveSession) -> AgentSession:
        stack = AsyncExitStack()
        await stack.enter_async_context(live)
        session = self._make(live)
        session.grace = self.stop_grace
        session.implementation = {"name": self.name, "version": self.version}
        session.spawn = lambda cwd: self.create_subagent(session, cwd)
        session.retire = lambda: self._leave(retire(self, session))
        live.on_failure = lambda: self._abandon(session)
        session.clients = lambda: sorted(
            (link for link in self._links if link.follows(session.id)), key=lambda link: link.serial
        )
        self._sessions[live.session_id] = session
        self._open[live.session_id] = stack
        live.on_told = live.presence.on_told = lambda: self.noticed(session.id)
        self.noticed(session.id)
        return session

    def _make(self, live: LiveSession) -> AgentSession:
        return AgentSession(live, self._work, self)

    def _abandon(self, session: AgentSession) -> None:
        """Its store failed: it is let go, so that it can be opened again when that works."""
        self._leave(self.release(session))

    def _leave(self, leaving: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(leaving)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def release(self, session: AgentSession) -> None:
        """Put a session away; it can be opened again."""
        if self._sessions.get(session.id) is not session:
            return
        del self._sessions[session.id]
        self.noticed(session.id)
        stack = self._open.pop(session.id)
        session.gone = True
        closed = (
            None if session.id in self._closing else self._closing.setdefault(session.id, asyncio.Event())
        )
        try:
            await session.stop()
            await stack.aclose()
            if not session.live.failed:  # there, every client is told by its own attachment
                await asyncio.gather(*(link.leave(session.id) for link in tuple(self._links)))
        finally:
            if closed is not None:
                del self._closing[session.id]
                closed.set()

    async def _work(self, turn: AgentTurn) -> StopReason | str | None:
        command = self.called(turn)
        if command is not None:
            handler, rest = command
            return await handler(turn, rest)
        if self._handler is None:
            raise LocalError("this agent has no prompt handler: decorate one with `@agent.on_prompt`")
        return await self._handler(turn)
