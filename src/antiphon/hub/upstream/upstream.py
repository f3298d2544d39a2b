"""Upstream: one running agent behind the hub."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

from msgspec import Struct, structs

from antiphon.bridge.losses import Report
from antiphon.client import ClientOptions, ProcessOptions, ProtocolVersion
from antiphon.client.elicitation import Elicitation
from antiphon.client.elicitation_requests import ElicitationRequests
from antiphon.client.logins import Logins
from antiphon.client.protocol.agent_connection import AgentConnection, AgentHandlers
from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.dialect_v1 import CompletionPromise
from antiphon.client.protocol.handshake import ClientOffer, version_number
from antiphon.client.protocol.questions import AnswerMemory
from antiphon.client.protocol.session_opener import Setup
from antiphon.client.target import open_target
from antiphon.client.workspace import Workspace
from antiphon.client.workspace.offer import WorkspaceOffer
from antiphon.engine.questions import Elicited
from antiphon.errors import AntiphonError, LinkLost
from antiphon.hub.upstream.agent_extensions import AgentExtensions
from antiphon.hub.upstream.agent_reader import AgentReader
from antiphon.hub.upstream.errors import FailedAgent
from antiphon.hub.upstream.files import EditorWorkspace, Files
from antiphon.hub.upstream.mcp import McpRelay
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.upstream.target import Target
from antiphon.hub.upstream.worker_feed import UpstreamListener
from antiphon.schema import v2
from antiphon.schema.mcp_over_acp import MESSAGE
from antiphon.schema.version import Extras
from antiphon.server.ids import new_id
from antiphon.server.questions import COMPLETE, Channel, Notify
from antiphon.server.session import ServedSession

logger = logging.getLogger("antiphon.hub")

SLOW = 5.0
"""Seconds after which the log reports that an agent is still starting."""
CLOSE_GRACE = 5.0
CANCEL = v2.ElicitationCancelAction()
LAST_LINES = 20


class UpstreamSettings(Struct, frozen=True, kw_only=True):
    """How the processes of an agent are started, and what they are offered."""

    env: Mapping[str, str]
    version: ProtocolVersion | None
    files: Files
    """Whose files and terminals an agent of v1 may use."""
    start: float
    """Seconds until it has to be initialized."""
    promise: CompletionPromise
    """Whether it keeps its promise of `turn_complete`, shared by all processes of the agent."""


class Upstream:
    """An agent that was started, owned by one task from its start to its end. Implements `Decider`."""

    def __init__(
        self,
        name: str,
        target: Target,
        *,
        settings: UpstreamSettings,
        report: Report,
        auth_changed: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        """`report` is called with what the bridge loses, if the agent speaks v1; `auth_changed` when the
        agent reports another login status."""
        self.name = name
        self._target = target
        self._settings = settings
        self._report = report
        self._auth_changed = auth_changed
        self.users = 0
        """How many sessions it works for."""
        self.mixes = False
        """Whether it has given one id to two sessions that are open."""
        self.wants_login = False
        """Whether it has refused something because a login is needed."""
        self.logged_in = False
        """Whether a client has logged in there: that may have been by hand, and ends with the process."""
        self.touched = time.monotonic()
        """When it was last used by something that is no session."""
        self.asks: Channel | None = None
        """The client that it may ask outside of every session: the one that logs in (ELIC-04)."""
        self._answer_memory = AnswerMemory()
        self._ending: dict[str, asyncio.Event] = {}
        """The sessions that were left and are being ended."""
        self.mcp = McpRelay(lambda: self.agent.connection)
        """The MCP servers of clients that it may use."""
        self._stderr: deque[str] = deque(maxlen=LAST_LINES)
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None]
        self._elicitations: ElicitationRequests
        self.agent: AgentConnection[UpstreamSession]
        """The connection to it, once it is initialized."""
        self.logins: Logins

    def launch(self) -> None:
        """Start the agent."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def started(self) -> None:
        """Wait until it is initialized. Raises what kept it from that."""
        try:
            await asyncio.shield(self._ready)
        except asyncio.CancelledError:
            if self._ready.cancelled():
                raise LinkLost("it was ended at its start") from None
            raise

    @property
    def ready(self) -> bool:
        """Whether it has been initialized."""
        done = self._ready
        return done.done() and not done.cancelled() and done.exception() is None

    @property
    def alive(self) -> bool:
        if self._task.done() or self._stop.is_set():
            return False
        return not self._ready.done() or (self.ready and self.agent.lost is None)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        late = loop.call_later(self._settings.start, self._too_late)
        slow = loop.call_later(SLOW, self._log_slow)
        try:
            async with AsyncExitStack() as stack:
                await self._connect(stack)
                late.cancel()
                slow.cancel()
                self._ready.set_result(None)
                closed = asyncio.ensure_future(self.agent.connection.wait_closed())
                stopped = asyncio.ensure_future(self._stop.wait())
                try:
                    await asyncio.wait((closed, stopped), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    closed.cancel()
                    stopped.cancel()
        except Exception as error:
            if not self._ready.done():
                self._ready.set_exception(error)
                self._ready.exception()  # mark it as retrieved: nobody may wait for it
            elif not isinstance(error, AntiphonError):
                logger.exception("connection to agent %s failed", self.name)
        finally:
            late.cancel()
            slow.cancel()
            if not self._ready.done():
                self._ready.cancel()

    async def _connect(self, stack: AsyncExitStack) -> None:
        """Start the agent or connect to it, and initialize the connection."""
        process = ProcessOptions(env=self._settings.env, on_stderr=self._log)
        transport = await open_target(self._target, stack, process=process)
        stack.push_async_callback(transport.aclose)  # also if it cannot be initialized
        workspace = WorkspaceOffer(self._workspace(), lambda: self.agent)
        stack.push_async_callback(workspace.aclose)
        elicitations = self._elicitations = ElicitationRequests(
            frozenset({"form", "url"}), self._elicit_outside, lambda: self.agent
        )

        def auth_status_updated(_: Any) -> None:
            self.agent.connection.start_soon(self._auth_changed())

        def link_lost(_: LinkLost) -> None:
            workspace.link_lost()
            elicitations.link_lost()

        self.agent = AgentConnection(
            transport,
            self._offer(elicitations, workspace),
            self._make_session,
            AgentHandlers(
                requests={**elicitations.handlers, **workspace.handlers, MESSAGE: self.mcp.serve},
                unbegun=elicitations.unbegun,
                notifications={"auth/status_update": auth_status_updated, **elicitations.notifications},
                on_left=lambda session: workspace.release(session.id),
                on_lost=link_lost,
            ),
            promise=self._settings.promise,
            report=self._report,
        )
        await stack.enter_async_context(self.agent.connection)
        await self.agent.initialize()
        self.logins = Logins(self.agent)
        AgentReader(self.agent)
        AgentExtensions(self.agent)

    def _offer(self, elicitations: ElicitationRequests, workspace: WorkspaceOffer) -> ClientOffer:
        proposed, options = self._settings.version == "v2-proposed", ClientOptions(name="antiphon-hub")
        return ClientOffer(
            name=options.name,
            client_version=options.client_version,
            client_id=new_id("client"),
            version=version_number(self._settings.version),
            proposed=proposed,
            opt_ins=options.opt_ins,
            # A hub has clients, a queue and questions of its own.
            extras=Extras(
                queue_updates=False, seq=False, presence=False, annotations=True, prompt_ids=proposed
            ),
            elicitation=elicitations.capabilities,
            workspace=workspace.capabilities,
            terminal_login=False,
        )

    def _workspace(self) -> Workspace | None:
        match self._settings.files:
            case Files.EDITOR:
                return EditorWorkspace(self._session)
            case Files.HUB:
                return Workspace()
            case Files.NONE:
                return None

    def _too_late(self) -> None:
        """Fail what waits for the agent at once, however long it takes to end it."""
        if not self._ready.done():
            silent = LinkLost(
                f"it did not answer `initialize` within {self._settings.start:g} s", stderr=self._stderr
            )
            self._ready.set_exception(silent)
            self._ready.exception()
            self._task.cancel()

    def _log_slow(self) -> None:
        if not self._ready.done():
            limit = f"within {self._settings.start:g} s"
            logger.warning(
                "agent %s is still starting after %g s; it has to start %s", self.name, SLOW, limit
            )

    def _make_session(self, session_id: str, dialect: AgentDialect, request: Setup) -> UpstreamSession:
        before = self.agent.find(session_id)
        if before is not None and before.feed.worker is not None and before.feed.ended is None:
            self.mixes = True
            before.feed.end("it has given the session's id to another one")
        return UpstreamSession(self.agent, session_id, dialect, request, self, self._answer_memory)

    async def _session(self, session_id: str) -> ServedSession | None:
        session = self.agent.find(session_id)
        if session is None or session.feed.ended is not None:
            return None
        await session.feed.wait_for_client()
        worker = session.top.feed.worker  # a session that works for another one asks through it
        return None if worker is None else worker.session

    def cut_children(self, session: UpstreamSession) -> None:
        """Hand on nothing of the subagents that a session had before it was reopened."""
        for child in self.agent.sessions.values():
            if child.parent is session:
                child.feed.cut()

    def leave(self, session: UpstreamSession) -> None:
        """Leave a session. If other sessions use the agent, this one is ended there."""
        session.feed.cut()
        if self.users > 1 and self.alive and self.agent.find(session.id) is session:
            ended = self._ending[session.id] = asyncio.Event()
            self.agent.connection.start_soon(self._end_session(session, ended))

    async def _end_session(self, session: UpstreamSession, ended: asyncio.Event) -> None:
        agent = self.agent
        try:
            with suppress(AntiphonError, TimeoutError):
                async with asyncio.timeout(CLOSE_GRACE):
                    if session.turns.turn is not None:
                        await session.cancel()
                    if agent.abilities.close:
                        await agent.close(session)
            if agent.find(session.id) is session:
                agent.detach(session, "the hub has left the session")
        finally:
            if self._ending.get(session.id) is ended:
                del self._ending[session.id]
            ended.set()

    async def left_behind(self, session_id: str) -> None:
        """Wait until a session that was left has ended at the agent."""
        while session_id in self._ending:
            await self._ending[session_id].wait()

    async def work_ended(self, session_id: str) -> None:
        """Wait until a session that was left has ended, or the agent has."""
        await self.left_behind(session_id)
        if not self.alive:
            await asyncio.wait([self._task])

    def end(self, reason: str) -> None:
        """End the agent, for all sessions that it works for."""
        for session in tuple(self.agent.sessions.values()) if self.ready else ():
            session.feed.end(reason)
        self.stop()

    def stop(self) -> asyncio.Task[None]:
        """End the agent. The task is done when nothing of it is left."""
        self._stop.set()
        if not self._ready.done():
            self._ready.cancel()
            self._task.cancel()
        return self._task

    @property
    def failed_agent(self) -> FailedAgent:
        """What to tell of it with an error. Its last lines on stderr are left out if it works for several
        sessions: the clients of one may not read what is about another."""
        return FailedAgent(self.name, self._target, tuple(self._stderr) if self.users <= 1 else ())

    def _log(self, line: str) -> None:
        self._stderr.append(line)
        logger.info("%s: %s", self.name, line)

    # --- questions of the agent --------------------------------------------------------------------

    async def _asked(self, session_id: str) -> tuple[UpstreamListener, UpstreamSession] | None:
        """The worker that is asked, and the session that asks: one that works for another one asks through
        it. An agent may ask before the worker is there."""
        session = self.agent.find(session_id)
        worker = None if session is None else await session.top.feed.led()
        return None if session is None or worker is None else (worker, session)

    async def decide_permission(
        self, session_id: str, question_id: str, request: v2.RequestPermissionRequest
    ) -> v2.RequestPermissionResponse | None:
        try:
            asked = await self._asked(session_id)
            return None if asked is None else await asked[0].decide_permission(question_id, request, asked[1])
        except Exception:
            logger.exception("permission request failed; the permission is not given")
            return None

    async def decide_elicitation(
        self, session_id: str, question_id: str, request: Elicited
    ) -> v2.CreateElicitationResponse | None:
        asked = await self._asked(session_id)
        if asked is None:
            return None
        worker, session = asked
        elicitation = Elicitation(self.agent.agent_name, request, question_id=question_id)
        return await self._elicitations.decide(
            elicitation, lambda given: worker.decide_elicitation(given, session)
        )

    async def _elicit_outside(self, elicitation: Elicitation) -> Any:
        """Ask the client whose request the elicitation belongs to, under the id that this has there
        (PROXY-06)."""
        to = self.asks
        if to is None or not to.takes(elicitation.mode):
            return CANCEL
        response, notify = await to.put(structs.replace(elicitation.request, **to.scope))
        if notify is not None and isinstance(elicitation.request, v2.ElicitationUrlMode):
            self.agent.connection.start_soon(notify_completed(elicitation, notify))
        return response


async def notify_completed(elicitation: Elicitation, notify: Notify) -> None:
    """Notify a client once the agent reports that the user is done at an address (ELIC-11)."""
    visit = elicitation.request
    if isinstance(visit, v2.ElicitationUrlMode) and await elicitation.completed():
        await notify(COMPLETE, v2.CompleteElicitationNotification(elicitation_id=visit.elicitation_id))
