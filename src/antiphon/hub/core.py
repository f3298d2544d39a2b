"""HubCore: the parts of a hub, and their life. A hub is an agent to its clients; the agents behind it work on
its sessions."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from antiphon.bridge.losses import LossCounter
from antiphon.client import ProtocolVersion
from antiphon.client.protocol.dialect_v1 import CompletionPromise
from antiphon.engine.turn import Cause
from antiphon.hub.about import HubAbout
from antiphon.hub.access.admission import Admission
from antiphon.hub.access.audit import Audit
from antiphon.hub.access.limits import HubLimits, Spent
from antiphon.hub.access.origins import OriginPolicy, read_public_url
from antiphon.hub.access.tokens import OWNER, Tokens, new_token
from antiphon.hub.access.trusted_proxies import TrustedProxies
from antiphon.hub.access_policy import HubPolicy
from antiphon.hub.alerts.hub_alerts import HubAlerts
from antiphon.hub.context import HubContext
from antiphon.hub.cut_sessions import CutSessions
from antiphon.hub.folders.file_search import FileSearch
from antiphon.hub.folders.lister import FolderLister
from antiphon.hub.http.login import BrowserLogin
from antiphon.hub.http.page import Page
from antiphon.hub.idle import IdleReaper
from antiphon.hub.offered_agents import OfferedAgents
from antiphon.hub.options import Access, HubOptions, QuestionOptions
from antiphon.hub.own_methods import OwnMethod, OwnMethods
from antiphon.hub.process import MARK, map_large_blocks, reap
from antiphon.hub.quotas import QueuedBytes
from antiphon.hub.records import recorded_agent
from antiphon.hub.reports import FORMATS, Reports
from antiphon.hub.session_factory import SessionFactory
from antiphon.hub.session_list import SessionChanges, SessionListNotifier
from antiphon.hub.store_check import StoreCheck
from antiphon.hub.upstream.extensions import ExtensionRelay
from antiphon.hub.upstream.files import Files
from antiphon.hub.upstream.first_agent import FirstAgent
from antiphon.hub.upstream.known_agents import KnownAgents
from antiphon.hub.upstream.logins import AgentLogins
from antiphon.hub.upstream.pool import UpstreamPool
from antiphon.hub.upstream.target import Target, default_agent_name, read_target
from antiphon.hub.upstream.upstream import Upstream, UpstreamSettings
from antiphon.hub.worker.worker import UpstreamWorker, worker_of
from antiphon.schema.antiphon.clients import Present
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.version import EXTRAS
from antiphon.server.access import AccessPolicy
from antiphon.server.authentication import Logins
from antiphon.server.clients.attachments import LAST_UPDATES
from antiphon.server.connection import ClientConnection
from antiphon.server.distant.session import DistantSession
from antiphon.server.offer import Offer
from antiphon.server.registry import SessionRegistry
from antiphon.server.request import ServerContext
from antiphon.server.server import Server
from antiphon.server.session import ServedSession
from antiphon.server.tasks import Tasks
from antiphon.stores.base import Store
from antiphon.stores.memory import MemoryStore
from antiphon.stores.search.base import searches
from antiphon.stores.shared import SharedStore
from antiphon.transports.base import Transport
from antiphon.version import __version__

if TYPE_CHECKING:
    from antiphon.hub.cluster.cluster import Cluster
    from antiphon.hub.cluster.membership import Membership
    from antiphon.remote.http_server import HttpServer

logger = logging.getLogger("antiphon.hub")

STOP_GRACE = 5.0
"""Seconds that the tasks of a session get to end in."""


class HubCore:
    version = __version__

    def __init__(
        self,
        agents: Target | Mapping[str, Target],
        *,
        store: Store | None,
        version: ProtocolVersion | Mapping[str, ProtocolVersion | None] | None,
        options: HubOptions,
        questions: QuestionOptions,
        access: Access,
        limits: HubLimits,
        page: Page | None,
    ) -> None:
        """`Hub` documents the parameters."""
        kept: Store = MemoryStore() if store is None else store
        self.store = kept
        self._tasks = Tasks("the hub", grace=STOP_GRACE)
        named = agents if isinstance(agents, Mapping) else {default_agent_name(agents): agents}
        self.agents = {name: read_target(target) for name, target in named.items()}
        self.default = next(iter(self.agents), "")
        self.cluster = _cluster(kept, options, self._tasks, works=bool(self.agents))
        """The other hubs on its store, if it shares one."""
        self.cwd = _current_folder()
        """The folder that clients on other machines offer for a new session."""
        self.token = access.token or new_token()
        self.questions = questions.asked
        self.http: HttpServer | None = None
        self._host = ""
        self.port: int | None = None
        """Where it listens."""
        self._started = time.time()
        self.secure = False
        self.public_url = None if access.public_url is None else read_public_url(access.public_url)
        """The origin of its page behind a reverse proxy."""
        self.limits = limits
        self.audit = Audit(access.audit)
        self._spent = None if self.cluster is None else Spent()
        self.admission = Admission(
            OriginPolicy(hosts=access.hosts, origins=access.origins, public=self.public_url),
            Tokens(self.token, access.tokens),
            limits=self.limits,
            audit=self.audit,
            proxies=TrustedProxies(access.trusted_proxies),
            spent=self._spent,
        )
        self.queued_bytes = QueuedBytes(self.limits)
        self.losses = LossCounter()
        """What could not be translated between v1 and v2, for its clients and its agents."""
        self._speaks = version
        self._options = options
        self.browsers = BrowserLogin(self, self.admission, self.audit)
        self.page: Page = {} if page is None else page
        self._completion_promises: dict[str, CompletionPromise] = {}
        self.upstreams = UpstreamPool(self.agents, self._start, share=options.share)
        self.known_agents = KnownAgents(options.known_agents, self.agents)
        self.reports = Reports(self.store, self._attached)
        self.file_search = FileSearch(self.store)
        self.offer = Offer(
            "antiphon-hub",
            self.version,
            busy=Delivery(options.busy),
            turn_complete=options.turn_complete,
            keeps=not isinstance(kept, MemoryStore),
        )
        self.offer.provisional = True  # until the agent was started, it is not known what it takes
        self.alerts = HubAlerts(
            options.alerts,
            self,
            self._tasks,
            contact=self.public_url,
            agent_of=lambda session: worker_of(session).binding.agent,
        )
        self.offer.has_push = self.alerts.push is not None
        self.offer.extras = replace(EXTRAS, session_updates=True)
        names = list(self.agents)
        self.offered_agents = OfferedAgents(
            self.agents, names, self.upstreams.states, offer_installed=options.offer_installed
        )
        self._own_methods = OwnMethods(self._methods(options))
        self.offer.ours = {
            "hub": True,
            "agents": names,
            **self._own_methods.announced,
            **({} if searches(kept) is None else {"searchSessions": {}}),
            **({"push": True} if self.offer.has_push else {}),
        }
        logins = Logins(required=False)  # that is for the agents to say
        self._context = HubContext(
            kept,
            self.offer,
            upstreams=self.upstreams,
            logins=AgentLogins(logins, self.upstreams, self.default),
            known_agents=self.known_agents,
            audit=self.audit,
            questions=questions,
            home=None if self.cluster is None else to_builtins(self.cluster.home),
        )
        self._first_agent = FirstAgent(self._context, self._tasks)
        self._relay = relay = ExtensionRelay(
            self.upstreams,
            self.default,
            self._own_methods.answer,
            lambda session: worker_of(session).binding.bring(),
        )
        self._changes = changes = SessionChanges()
        self.registry = SessionRegistry(
            kept,
            lambda session, registry: UpstreamWorker(session, registry, self._context),
            agent_of=lambda record: recorded_agent(record) or self.default,
            grace=STOP_GRACE,
            most_sessions=self.limits.sessions,
            changed=self._session_changed,
            opened=self.alerts.watch,
            elsewhere=self.cluster,
            lost=Cause.HUB_LOST,
        )
        self._cut_sessions = CutSessions(
            kept,
            self.registry,
            may_own=(lambda _: True) if self.cluster is None else self.cluster.may_own,
            attended=self.cluster is not None,
        )
        self._membership = None if self.cluster is None else self._member(self.cluster)
        factory = SessionFactory(self.registry, self._context)
        context = ServerContext(
            registry=self.registry,
            offer=self.offer,
            logins=logins,
            create=factory.create,
            fork=factory.fork,
            call_extension=relay.call,
            extension_notified=relay.notified,
            push=self.alerts.push,
        )
        self._server = Server(context, owns_store=store is None, losses=self.losses)
        self.idle_reaper = IdleReaper(self.registry, self._context, options.idle)
        self._session_list = SessionListNotifier(changes, self.registry)
        self._store_check = StoreCheck(kept, changes.note)

    def _methods(self, options: HubOptions) -> Iterator[OwnMethod]:
        """Yield the methods that this hub answers itself."""
        agents, reports, cluster = self.offered_agents, self.reports, self.cluster
        yield OwnMethod("_antiphon/list_agents", lambda _: agents.list(), {"listAgents": {}})
        if options.add_agents:
            yield OwnMethod("_antiphon/add_agent", agents.add, {"addAgent": {}})
        if self.agents:
            yield OwnMethod("_antiphon/list_folders", FolderLister(self.cwd).answer, {"listFolders": {}})
        yield OwnMethod("_antiphon/find_files", self.file_search.find, {"findFiles": {}})
        yield OwnMethod("_antiphon/link", self.browsers.answer_link, {"link": True})
        yield OwnMethod("_antiphon/journal", reports.journal)
        yield OwnMethod("_antiphon/timeline", reports.timeline, {"timeline": True})
        formats = {"format": list(FORMATS)}
        yield OwnMethod("_antiphon/transcript", reports.transcript, {"transcript": formats})
        if cluster is not None:
            yield OwnMethod(
                "_antiphon/hubs", lambda _: cluster.hubs(self._about(), len(self.live)), {"hubs": True}
            )

    @property
    def stopping(self) -> bool:
        """Whether nothing new is taken any more."""
        return self._context.stopping

    # --- life --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def listening(
        self,
        host: str,
        port: int,
        *,
        or_any_port: bool = False,
        tls: ssl.SSLContext | None,
        insecure: bool,
    ) -> AsyncIterator[None]:
        from antiphon.hub.http.listener import check_address, listen

        check_address(host, tls=tls, insecure=insecure)
        map_large_blocks()
        async with self.serving(), listen(self, host, port, tls, or_any_port=or_any_port) as server:
            self._host, self.port, self.http, self.secure = host, server.port, server, tls is not None
            if self._membership is not None:
                self._membership.describe()
            yield

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Run the hub inside the block. At its end every session is released, and every agent ends."""
        first = self._server.serving_first
        if first:
            self._context.stopping = False  # an earlier life may have ended
            if self._options.mark is not None:
                await asyncio.to_thread(reap, self._options.mark)
            if self.cluster is not None:
                await self.cluster.store.open()
                await self.cluster.end_earlier_lease()
            await self._store_check.begin()
            if self.agents:
                await self._cut_sessions.end_all()
        async with self._server.serving():
            if first:
                if self._membership is not None and self.agents:
                    await self._join(self._membership)
                self._tasks.start_soon(self.idle_reaper.run())
                self._tasks.start_soon(self._session_list.run())
                self._first_agent.offer_what_is_known()
                self._first_agent.begin()
            try:
                yield
            finally:
                if self._server.serving_last:
                    await self._put_away()

    def _member(self, cluster: Cluster) -> Membership:
        """Make what this hub tells the other hubs on the store, and learns from them."""
        from antiphon.hub.cluster.distant_subagents import DistantSubagents
        from antiphon.hub.cluster.membership import Membership
        from antiphon.hub.cluster.session_news import SessionNews
        from antiphon.hub.cluster.shared_limits import SharedLimits
        from antiphon.hub.cluster.shared_tokens import SharedTokens
        from antiphon.hub.cluster.takeovers import Takeovers

        subagents = DistantSubagents(self.registry, self._tasks)

        def changed_elsewhere(session_id: str) -> None:
            self._changes.note(session_id)
            subagents.session_changed(session_id)

        news = SessionNews(
            cluster.store, self.registry, cluster.sessions, self._tasks, changed=changed_elsewhere
        )
        takeovers = Takeovers(
            cluster.store,
            self.registry,
            self._tasks,
            may_own=cluster.may_own,
            end_cut=self._cut_sessions.end_of_lost_owner,
            stopping=lambda: self.stopping,
        )
        tokens = SharedTokens(cluster.store, self.admission.tokens, self._tasks)
        assert self._spent is not None
        limits = SharedLimits(cluster.store, self.admission, self.queued_bytes, self._spent)
        return Membership(
            cluster,
            self._tasks,
            news,
            takeovers,
            tokens,
            limits,
            subagents,
            about=self._about,
            lose=self.registry.distant.lose,
        )

    def _session_changed(self, session_id: str) -> None:
        self._changes.note(session_id)
        if self._membership is not None:
            self._membership.session_changed(session_id)

    async def _join(self, membership: Membership) -> None:
        """Join the other hubs on the store."""
        from antiphon.hub.cluster.operation_server import OperationServer
        from antiphon.hub.cluster.remote_policy import RemotePolicy

        server = OperationServer(
            self.registry,
            self._tasks,
            policy_of=lambda credential: RemotePolicy(credential, self.queued_bytes),
            audit=self.audit,
            call_agent=self._relay.call,
            notify_agent=self._relay.notified,
            stopping=lambda: self.stopping,
        )
        await membership.begin(server.handle)

    def _about(self) -> dict[str, Any]:
        """What other hubs, and operators, see of this one."""
        assert self.cluster is not None
        scheme = "wss" if self.secure else "ws"
        about = HubAbout(
            label=self.cluster.home.label,
            address="" if self.port is None else f"{scheme}://{self._host}:{self.port}/acp",
            version=self.version,
            sessions=len(self.live),
            clients=self.clients,
            started_at=self._started,
            name=self.cluster.name,
        )
        return dict(to_builtins(about))

    async def wind_down(self) -> None:
        """Take nothing new, and give running turns the grace time to end."""
        self._context.stopping = True
        await asyncio.gather(*(worker_of(session).rest(self._options.grace) for session in self.live))
        at_work = [session for session in self.live if session.fold.turn is not None]
        await asyncio.gather(*(session.worker.stop() for session in at_work))
        # Every client gets what happened so far, but nobody waits for one that does not read.
        voices = [voice for session in self.live for voice in session.attached()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_UPDATES):
                await asyncio.gather(*(voice.caught_up() for voice in voices))

    async def _put_away(self) -> None:
        self._context.stopping = True
        await self._tasks.aclose()
        await self._store_check.aclose()
        await self.reports.aclose()
        await self.file_search.aclose()
        for session in self.live:
            await self.registry.release(session)
        if self._membership is not None:
            await self._membership.end()
        await self.upstreams.aclose()

    async def serve(self, transport: Transport, policy: AccessPolicy | None = None) -> None:
        """Serve one client until it is gone; one of this process, unless said otherwise, as its owner."""
        await self._first_agent.known()
        await self._server.serve(transport, policy or HubPolicy(self, OWNER))

    def find(self, session_id: str) -> ServedSession | None:
        """Return a session that is open here."""
        return self.registry.find(session_id)

    @property
    def live(self) -> list[ServedSession]:
        """The sessions that are open here."""
        return self.registry.sessions

    @property
    def distant(self) -> list[DistantSession]:
        """The sessions that are open here and worked on by another hub."""
        return self.registry.distant.sessions

    def _attached(self, session_id: str) -> Sequence[Present]:
        session = self.find(session_id)
        return () if session is None else session.live.presence.clients()

    @property
    def connections(self) -> Collection[ClientConnection]:
        """The clients that are connected just now."""
        return self.registry.connections

    @property
    def clients(self) -> int:
        """How many clients are connected just now."""
        return len(self.registry.connections)

    # --- agents ------------------------------------------------------------------------------------

    def _start(self, name: str) -> Upstream:
        env = {} if self._options.mark is None else {MARK: self._options.mark}
        version = self._speaks.get(name) if isinstance(self._speaks, Mapping) else self._speaks
        return Upstream(
            name,
            self.agents[name],
            settings=UpstreamSettings(
                env=env,
                version=version,
                files=Files(self._options.files),
                start=self._options.start,
                promise=self._completion_promises.setdefault(name, CompletionPromise()),
            ),
            report=self.losses,
            auth_changed=lambda: self._server.auth_changed(),
        )


def _current_folder() -> str | None:
    with contextlib.suppress(OSError):  # it was removed
        return os.getcwd()
    return None


def _cluster(store: Store, options: HubOptions, tasks: Tasks, *, works: bool) -> Cluster | None:
    """Return the place of a hub among the hubs that share its store, if that store can be shared. A hub
    without agents `works` on no session."""
    if not isinstance(store, SharedStore):
        return None
    from antiphon.hub.cluster.cluster import Cluster
    from antiphon.hub.cluster.home import Home

    home = Home(label=options.label or socket.gethostname(), movable=options.movable)
    name = (
        "" if options.mark is None else sha256(f"{socket.gethostname()}\n{options.mark}".encode()).hexdigest()
    )
    return Cluster(store, home, tasks, works=works, name=name)
