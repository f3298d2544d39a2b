"""SessionFactory: makes and forks the sessions of a hub, each with a session at an agent."""

from __future__ import annotations

from typing import Any

from antiphon.errors import AntiphonError, InvalidParams, LinkLost, StoreError
from antiphon.hub.context import HubContext
from antiphon.hub.records import recorded_agent
from antiphon.hub.upstream.errors import to_request_error
from antiphon.hub.upstream.mcp import Provision
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.worker.options import refusal, restore_options
from antiphon.hub.worker.place import Place
from antiphon.hub.worker.worker import UpstreamWorker, worker_of
from antiphon.schema import v2
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.antiphon.sessions import NewSessionMeta
from antiphon.schema.version import without_ours
from antiphon.server.connection import ClientConnection
from antiphon.server.distant.session import DistantSession
from antiphon.server.registry import SessionRegistry
from antiphon.server.session import ServedSession
from antiphon.server.session_facts import options_of


class SessionFactory:
    def __init__(self, registry: SessionRegistry, context: HubContext) -> None:
        self._registry = registry
        self._context = context

    async def create(self, params: v2.NewSessionRequest, maker: ClientConnection) -> ServedSession:
        self._context.check_taking()
        with self._registry.opening():
            return await self._create(params, maker)

    async def _create(self, params: v2.NewSessionRequest, maker: ClientConnection) -> ServedSession:
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
            await worker.bind(upstream, opened, again=False, begun=worker.note_start)
        except BaseException as error:  # also a client that is gone meanwhile
            provision.end()
            if session is not None:
                await self._registry.release(session)
            elif upstream is not None:
                context.upstreams.let_go(upstream, opened)
            if isinstance(error, AntiphonError | OSError) and not isinstance(error, StoreError):
                raise context.failure(name, error, upstream) from error
            raise
        return session

    def _chosen(self, meta: dict[str, Any] | None) -> str:
        name = read_meta(NewSessionMeta, meta).agent
        if name is None:
            return self._context.default
        if name not in self._context.agents:
            known = ", ".join(self._context.agents)
            raise InvalidParams(f"there is no agent {name!r} here; it is one of {known}")
        return name

    async def fork(
        self, params: v2.ForkSessionRequest, at: str | None, maker: ClientConnection
    ) -> ServedSession:
        self._context.check_taking()
        with self._registry.opening():
            return await self._fork(params, at, maker)

    async def _fork(
        self, params: v2.ForkSessionRequest, at: str | None, maker: ClientConnection
    ) -> ServedSession:
        forked = await self._registry.open(params.session_id)
        if isinstance(forked, DistantSession):
            return await self._fork_distant(params, at)
        upstreams, source = self._context.upstreams, worker_of(forked)
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
                upstreams.let_go(*there)
            raise
        worker = worker_of(session)
        worker.binding.agent, worker.binding.mark = source.binding.agent, source.binding.mark
        if there is None:
            await worker.binding.keep()  # the agent is known, also if the hub ends before it is brought
        else:
            worker.provide(provision)
            upstream, at_agent = there
            at_agent.feed.drop_replay()
            await worker.bind(upstream, at_agent, again=False, begun=worker.note_start)
        return session

    async def _fork_distant(self, params: v2.ForkSessionRequest, at: str | None) -> ServedSession:
        """Fork a session of another hub. The agent here gets the conversation when it is first prompted."""
        record = await self._context.store.get(params.session_id)
        session = await self._registry.fork(params, at)
        binding = worker_of(session).binding
        binding.agent = (None if record is None else recorded_agent(record)) or self._context.default
        await binding.keep()
        return session

    async def _keep_options(self, source: UpstreamWorker, fork: UpstreamSession) -> None:
        """Give a fork at an agent the options of its source before anything is prompted there."""
        try:
            lost = await restore_options(fork, options_of(source.fold), reopened=True)
        except LinkLost as error:
            raise to_request_error(error) from error
        if lost:
            raise refusal(lost)
        fork.feed.answer_with_options(fork.config_options)
