"""HubService: the sessions of a hub. Each is made with, or brought to, a session at an agent."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from antiphon.engine.events import Updated
from antiphon.engine.session import Session
from antiphon.errors import AntiphonError, InvalidParams, LinkLost, RequestError, StoreError
from antiphon.hub.context import HubContext
from antiphon.hub.idle import IdleReaper
from antiphon.hub.quotas import SessionRoom
from antiphon.hub.records import HUB, recorded_agent
from antiphon.hub.session_list import SessionListNotifier
from antiphon.hub.upstream.errors import to_request_error
from antiphon.hub.upstream.extensions import ExtensionRelay
from antiphon.hub.upstream.feed import UpstreamFeed
from antiphon.hub.upstream.mcp import Provision
from antiphon.hub.worker.binding import Binding
from antiphon.hub.worker.options import refusal, restore_options
from antiphon.hub.worker.place import Place
from antiphon.hub.worker.worker import UpstreamWorker, worker_of
from antiphon.schema import v2
from antiphon.schema.version import ours_in, without_ours
from antiphon.server.authentication import Logins
from antiphon.server.connection import ClientConnection
from antiphon.server.offer import Offer
from antiphon.server.registry import SessionRegistry
from antiphon.server.service import FindSession, ModelProvider
from antiphon.server.session import ServedSession
from antiphon.server.session_facts import options_of
from antiphon.stores.base import SessionRecord


class HubService:
    believes_relays = False  # its clients are told apart by their tokens

    def __init__(
        self, context: HubContext, logins: Logins, *, own: ExtensionRelay, most_sessions: int, idle: float
    ) -> None:
        """`own`: what answers extension methods. `idle`: seconds after which an agent that nobody needs is
        stopped."""
        self.offer: Offer = context.offer
        self.logins = logins
        self.providers: Mapping[str, ModelProvider] = {}
        self._context = context
        self._extensions = own
        self._idle = idle
        self._most_sessions = most_sessions
        self._mcp_servers: dict[str, tuple[v2.McpServer, ...]] = {}
        """The MCP servers of sessions that were put away: a client that only joins one brings none. They may
        hold secrets, so they are kept only in memory."""
        self._registry: SessionRegistry
        self._room: SessionRoom
        self.idle: IdleReaper
        self.session_list: SessionListNotifier

    def bind(self, registry: SessionRegistry) -> None:
        self._registry = registry
        self._room = SessionRoom(self._most_sessions, lambda: len(registry.sessions))
        self.idle = IdleReaper(registry, self._context, self._idle)
        self.session_list = SessionListNotifier(registry, self._context)

    @property
    def may_take_mcp_over_acp(self) -> bool:
        """Until the agent was started, it is not known."""
        return self.offer.mcp_over_acp or not self._context.known_agents.is_current(self._context.default)

    # --- sessions ----------------------------------------------------------------------------------

    def make_worker(self, session: ServedSession) -> UpstreamWorker:
        return UpstreamWorker(session, self._registry, self._context)

    async def entered(self, session: ServedSession) -> None:
        session.mcp_servers = self._mcp_servers.pop(session.id, ())
        binding, created = worker_of(session).binding, session.fold.created
        record = await self._registry.store.get(session.id)
        kept = None if record is None else record.meta.get(HUB)
        if kept is None and created is not None:
            # It was cut off as it began: by its creation alone, it has no session at its agent yet.
            agent = created.meta.get("agent")
            binding.agent = agent if isinstance(agent, str) else self._context.default
        if isinstance(kept, dict):
            binding.restore(kept)

    def opening(self) -> AbstractContextManager[None]:
        return self._room.opening()

    def used(self, session: ServedSession) -> None:
        self.idle.touch(session)

    def released(self, session: ServedSession) -> None:
        if session.mcp_servers:
            self._mcp_servers[session.id] = session.mcp_servers

    def changed(self, session_id: str) -> None:
        self.session_list.note(session_id)

    def news(self, fold: Session) -> list[Updated]:
        return []

    def described(self, record: SessionRecord) -> dict[str, Any]:
        return {"agent": recorded_agent(record) or self._context.default}

    async def create(self, params: v2.NewSessionRequest, maker: ClientConnection | None) -> ServedSession:
        self._check_taking()
        with self.opening():
            return await self._create(params, maker)

    def _check_taking(self) -> None:
        if self._context.stopping:
            raise RequestError(AntiphonError.code, "The hub is about to end", data={"reason": "shutdown"})

    async def _create(self, params: v2.NewSessionRequest, maker: ClientConnection | None) -> ServedSession:
        context, name = self._context, self._chosen(params.meta)
        directories, servers = tuple(params.additional_directories), tuple(params.mcp_servers)
        provision = Provision(maker=maker)
        place = Place(params.cwd, directories, servers, provision, meta=without_ours(params.meta))
        upstream = opened = session = None
        try:
            upstream = await context.upstreams.take(name)
            opened = await context.open_new(upstream, place)
            session = await self._registry.create(params, {"agent": name})
            worker = worker_of(session)
            worker.provide(provision)
            worker.binding.agent = name
            await worker.bind(upstream, upstream.feed(opened), again=False, begun=worker.note_start)
        except BaseException as error:  # also a client that is gone meanwhile
            provision.end()
            if session is not None:
                await self._registry.release(session)
            elif upstream is not None:
                if opened is not None:
                    upstream.leave(upstream.feed(opened))
                context.upstreams.let_go(upstream)
            if isinstance(error, AntiphonError | OSError) and not isinstance(error, StoreError):
                raise to_request_error(error) from error
            raise
        return session

    def _chosen(self, meta: dict[str, Any] | None) -> str:
        name = ours_in(meta).get("agent")
        if name is None:
            return self._context.default
        if name not in self._context.agents:
            known = ", ".join(self._context.agents)
            raise InvalidParams(f"there is no agent {name!r} here; it is one of {known}")
        return str(name)

    async def fork(
        self, params: v2.ForkSessionRequest, at: str | None, maker: ClientConnection | None
    ) -> ServedSession:
        self._check_taking()
        with self.opening():
            return await self._fork(params, at, maker)

    async def _fork(
        self, params: v2.ForkSessionRequest, at: str | None, maker: ClientConnection | None
    ) -> ServedSession:
        upstreams, source = self._context.upstreams, worker_of(await self._registry.open(params.session_id))
        provision = Provision(maker=maker)
        there = await source.binding.fork(params, provision, at=at, agents_id=source.agents_message_id)
        if there is not None:
            upstreams.join(there[0])
        try:
            if there is not None:
                await self._keep_options(source, there[1])
            session = await self._registry.fork(params, at)
        except BaseException:
            provision.end()
            if there is not None:
                there[0].leave(there[1])
                upstreams.let_go(there[0])
            raise
        worker = worker_of(session)
        worker.binding.agent, worker.binding.mark = source.binding.agent, source.binding.mark
        if there is None:
            await worker.binding.keep()  # the agent is known, also if the hub ends before it is brought
        else:
            worker.provide(provision)
            upstream, feed = there
            feed.drop_replay()
            await worker.bind(upstream, feed, again=False, begun=worker.note_start)
        return session

    async def _keep_options(self, source: UpstreamWorker, fork: UpstreamFeed) -> None:
        """Give a fork at an agent the options of its source before anything is prompted there."""
        try:
            lost = await restore_options(fork.session, options_of(source.fold), reopened=True)
        except LinkLost as error:
            raise to_request_error(error) from error
        if lost:
            raise refusal(lost)
        fork.answer_with_options()

    # --- extensions --------------------------------------------------------------------------------

    async def call(self, find: FindSession, method: str, params: Any) -> Any:
        return await self._extensions.call(partial(_binding_by, find), method, params)

    async def notified(self, find: FindSession, method: str, params: Any) -> None:
        await self._extensions.notified(partial(_binding_by, find), method, params)


def _binding_by(find: FindSession) -> Binding | None:
    session = find()
    return None if session is None else worker_of(session).binding
