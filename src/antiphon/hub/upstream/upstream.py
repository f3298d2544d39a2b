"""Upstream: one agent at work behind the hub, and the sessions at it that hub sessions stand on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import structs

from antiphon.client import (
    Client,
    ClientOptions,
    ClientSession,
    Permission,
    ProcessOptions,
    ProtocolVersion,
    connect,
)
from antiphon.client.elicitation import Elicitation
from antiphon.client.workspace import Workspace
from antiphon.errors import AntiphonError, LinkLost
from antiphon.hub.upstream.feed import UpstreamFeed, UpstreamReader
from antiphon.hub.upstream.files import EditorWorkspace, Files
from antiphon.hub.upstream.mcp import McpOffers
from antiphon.hub.upstream.target import Target
from antiphon.schema import v2
from antiphon.server.questions import COMPLETE, Channel, Notify
from antiphon.server.session import ServedSession

logger = logging.getLogger("antiphon.hub")

SLOW = 5.0
"""Seconds after which the log says that an agent is still starting."""
CLOSE_GRACE = 5.0
CANCEL = v2.ElicitationCancelAction()
LAST_LINES = 20


class Upstream:
    """An agent that was started, owned by one task from its start to its end."""

    elicits = ("form", "url")

    def __init__(
        self,
        name: str,
        target: Target,
        *,
        env: Mapping[str, str],
        version: ProtocolVersion | None,
        files: Files = Files.EDITOR,
        start: float,
    ) -> None:
        """`files`: whose files and terminals an agent of v1 may use. `start`: seconds that it has until it is
        initialized."""
        self.name = name
        self._target = target
        self._env = env
        self._version = version
        self._files = files
        self._start = start
        self.users = 0
        """How many sessions it works for."""
        self.mixes = False
        """Whether it has given one id to two sessions that are open."""
        self.wants_login = False
        """Whether it has refused something for want of a login."""
        self.logged_in = False
        """Whether somebody has logged in there: that may have been by hand, and ends with the process."""
        self.touched = time.monotonic()
        """When it was last wanted by something that is no session."""
        self.asks: Channel | None = None
        """Whom it may ask just now, outside of every session: who logs in (ELIC-04)."""
        self._feeds: dict[str, UpstreamFeed] = {}
        self._ending: dict[str, asyncio.Event] = {}
        """The sessions that were left and are being ended."""
        self.mcp_offers = McpOffers()
        """The MCP servers of clients' own that it was told of."""
        self.on_connected: Callable[[Client], None] = lambda _: None
        """Called once it is initialized, before anything is asked of it."""
        self._stderr: deque[str] = deque(maxlen=LAST_LINES)
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None]
        self.client: Client

    def launch(self) -> None:
        """Start the agent."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def started(self) -> Client:
        """Its client, once it is initialized. Raises what kept it from that."""
        try:
            return await asyncio.shield(self._ready)
        except asyncio.CancelledError:
            if self._ready.cancelled():
                raise LinkLost("it was ended at its start") from None
            raise

    @property
    def ready(self) -> bool:
        """Whether it has been initialized: then it has its client."""
        done = self._ready
        return done.done() and not done.cancelled() and done.exception() is None

    @property
    def alive(self) -> bool:
        if self._task.done() or self._stop.is_set():
            return False
        return not self._ready.done() or (self.ready and self.client.lost is None)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        late = loop.call_later(self._start, self._too_late)
        slow = loop.call_later(SLOW, self._log_slow)
        try:
            async with connect(
                self._target,
                version=self._version,
                answers=self,
                workspace=self._workspace(),
                relay=self._follow,
                process=ProcessOptions(env=self._env, on_stderr=self._log),
                options=ClientOptions(name="antiphon-hub"),
            ) as client:
                late.cancel()
                slow.cancel()
                self.on_connected(client)
                self.client = client
                self._ready.set_result(client)
                closed = asyncio.ensure_future(client.connection.wait_closed())
                stopped = asyncio.ensure_future(self._stop.wait())
                try:
                    await asyncio.wait((closed, stopped), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    closed.cancel()
                    stopped.cancel()
        except Exception as error:
            if not self._ready.done():
                self._ready.set_exception(error)
                self._ready.exception()  # whoever waits gets it; nobody may be there any more
            elif not isinstance(error, AntiphonError):
                logger.exception("the link to %s failed", self.name)
        finally:
            late.cancel()
            slow.cancel()
            if not self._ready.done():
                self._ready.cancel()

    def _workspace(self) -> Workspace | None:
        match self._files:
            case Files.EDITOR:
                return EditorWorkspace(self._session)
            case Files.HUB:
                return Workspace()
            case Files.NONE:
                return None

    def _too_late(self) -> None:
        """Who waits is told at once, however long it takes to end it."""
        if not self._ready.done():
            silent = LinkLost(f"it did not answer `initialize` within {self._start:g} s", stderr=self._stderr)
            self._ready.set_exception(silent)
            self._ready.exception()
            self._task.cancel()

    def _log_slow(self) -> None:
        if not self._ready.done():
            limit = f"within {self._start:g} s"
            logger.warning(
                "agent %s is still starting after %g s; it has to start %s", self.name, SLOW, limit
            )

    def _follow(self, session: ClientSession) -> UpstreamFeed:
        before = self._feeds.get(session.id)
        feed = self._feeds[session.id] = UpstreamFeed(session)
        if before is not None and before.reader is not None and before.ended is None:
            self.mixes = True
            before.left("it has given the session's id to another one")
        return feed

    def feed(self, session: ClientSession) -> UpstreamFeed:
        return self._feeds[session.id]

    def find(self, session_id: str) -> UpstreamFeed | None:
        return self._feeds.get(session_id)

    @property
    def sessions(self) -> list[ServedSession]:
        """The hub sessions that it works for."""
        return [feed.reader.session for feed in self._feeds.values() if feed.reader is not None]

    @property
    def feeds(self) -> list[UpstreamFeed]:
        """The sessions that it has, also those that no hub session works on yet."""
        return list(self._feeds.values())

    async def _session(self, session_id: str) -> ServedSession | None:
        feed = self._feeds.get(session_id)
        if feed is None:
            return None
        await feed.begun()
        session = feed.session
        while session.parent is not None:  # a session that works for another one asks through it
            session = session.parent
        top = self._feeds.get(session.id)
        return None if top is None or top.reader is None else top.reader.session

    def cut_children(self, session: ClientSession) -> None:
        """What worked for a session before it was brought back is nobody's news."""
        for child in session.subagents:
            feed = self._feeds.get(child.id)
            if feed is not None:
                feed.cut()

    def leave(self, feed: UpstreamFeed) -> None:
        """A session is not worked on here any more, while others may be: what it has at work ends."""
        feed.cut()
        session = feed.session
        if self._feeds.get(session.id) is not feed:
            return
        del self._feeds[session.id]
        if self.users > 1 and self.alive:
            ended = self._ending[session.id] = asyncio.Event()
            self.client.connection.start_soon(self._end_session(session, ended))

    async def _end_session(self, session: ClientSession, ended: asyncio.Event) -> None:
        try:
            await _end_session(session)
        finally:
            if self._ending.get(session.id) is ended:
                del self._ending[session.id]
            ended.set()

    async def left_behind(self, session_id: str) -> None:
        """Wait until nothing is at work any more in a session that was left."""
        while session_id in self._ending:
            await self._ending[session_id].wait()

    async def work_ended(self, session_id: str) -> None:
        """Wait until nothing is at work in a session that was left: it was ended, or the agent was."""
        await self.left_behind(session_id)
        if not self.alive:
            await asyncio.wait([self._task])

    def end(self, reason: str) -> None:
        """It is ended, for all sessions that it works for."""
        for feed in tuple(self._feeds.values()):
            feed.left(reason)
        self.stop()

    def stop(self) -> asyncio.Task[None]:
        """Let it end; the task is done when nothing of it is left."""
        self._stop.set()
        if not self._ready.done():
            self._ready.cancel()
            self._task.cancel()
        return self._task

    def _log(self, line: str) -> None:
        self._stderr.append(line)
        logger.info("%s: %s", self.name, line)

    # What the agent asks

    async def _read_by(self, session: ClientSession) -> UpstreamReader | None:
        """Return the worker that is asked: a session that works for another one asks through it. An agent may
        ask before the worker is there."""
        while session.parent is not None:
            session = session.parent
        feed = self._feeds.get(session.id)
        return None if feed is None else await feed.read_by()

    async def decide(self, permission: Permission) -> str | None:
        reader = await self._read_by(permission.session)
        return None if reader is None else await reader.agent_asks(permission)

    async def elicit(self, elicitation: Elicitation) -> Any:
        session = elicitation.session
        if session is None:
            return CANCEL if self.asks is None else await self._pass_on(elicitation, self.asks)
        reader = await self._read_by(session)
        return CANCEL if reader is None else await reader.agent_elicits(elicitation)

    async def _pass_on(self, elicitation: Elicitation, to: Channel) -> Any:
        """To the client whose request it belongs to, under the id that this has there (PROXY-06)."""
        if not to.takes(elicitation.mode):
            return CANCEL
        response, tell = await to.put(structs.replace(elicitation.request, **to.scope))
        visit = elicitation.request
        if tell is not None and isinstance(visit, v2.ElicitationUrlMode):
            self.client.connection.start_soon(tell_done(elicitation, tell))
        return response


async def tell_done(elicitation: Elicitation, tell: Notify) -> None:
    """Once the agent says that what was to be done at an address is done, so does the hub (ELIC-11)."""
    visit = elicitation.request
    if isinstance(visit, v2.ElicitationUrlMode) and await elicitation.completed():
        await tell(COMPLETE, v2.CompleteElicitationNotification(elicitation_id=visit.elicitation_id))


async def _end_session(session: ClientSession) -> None:
    if session.client.find(session.id) is not session:
        return  # it was closed
    with suppress(AntiphonError, TimeoutError):
        async with asyncio.timeout(CLOSE_GRACE):
            if session.turn is not None:
                await session.cancel()
            if session.abilities.close:
                await session.close()
                return
    session.client.leave_session(session)
