"""The sessions of a hub: each is made with, or brought to, a session at an agent."""

from __future__ import annotations

from typing import Any

from antiphon.agent import Agent, AgentSession
from antiphon.agent.agent import ALWAYS, CONTENT
from antiphon.agent.declaring import options_of
from antiphon.agent.link import Link
from antiphon.client import ClientSession
from antiphon.engine.annotations import Annotation
from antiphon.engine.events import Delivery
from antiphon.errors import AntiphonError, InvalidParams, LinkLost, LocalError, RequestError, StoreError
from antiphon.hub.access.audit import Audit
from antiphon.hub.annotation_relay import relay_annotation
from antiphon.hub.announcing import announce
from antiphon.hub.bringing import Place, open_new
from antiphon.hub.course import Course
from antiphon.hub.faults import to_request_error
from antiphon.hub.forking import fork_there
from antiphon.hub.kept_options import refusal, restore_options
from antiphon.hub.known_agents import KnownAgent, KnownAgents, describe
from antiphon.hub.logins import AgentLogins
from antiphon.hub.mcp_offers import Provision
from antiphon.hub.resting import Resting
from antiphon.hub.session import HubSession
from antiphon.hub.session_room import SessionRoom
from antiphon.hub.upstream import Upstream
from antiphon.hub.upstreams import Upstreams
from antiphon.live.session import LiveSession
from antiphon.live.voice import Voice
from antiphon.schema import v2
from antiphon.schema.version import META_KEY, without_ours
from antiphon.stores.base import RecordPatch, SessionRecord

HUB = "hub"
"""Where a session's record says which agent it has, among its `meta`."""


class HubSessions(Agent):
    believes_relays = False  # its clients are told apart by what they are let in with
    agents: dict[str, Any]
    """What is behind the hub, by name."""
    default: str
    """The name of the agent that works unless a client chooses another."""
    unattended: str
    question_expiry: float | None
    audit: Audit
    stopping: bool
    room: SessionRoom
    upstreams: Upstreams
    logins: AgentLogins
    resting: Resting
    known_agents: KnownAgents
    servers: dict[str, tuple[v2.McpServer, ...]]
    """The MCP servers of sessions that were put away: who only joins one brings none. They may hold secrets,
    so they are not kept for longer than the hub runs."""

    def check_taking(self) -> None:
        """Raises where nothing new is taken any more."""
        if self.stopping:
            raise RequestError(AntiphonError.code, "The hub is about to end", data={"reason": "shutdown"})

    def _make(self, live: LiveSession) -> AgentSession:
        return HubSession(live, self)

    async def _enter(self, live: LiveSession) -> AgentSession:
        session = await super()._enter(live)
        session.mcp_servers = self.servers.pop(live.session_id, ())
        record = await self.store.get(live.session_id)
        kept = None if record is None else record.meta.get(HUB)
        if isinstance(session, HubSession) and kept is None and live.fold.created is not None:
            # It was cut off as it began: by its creation alone, it has no session at its agent yet.
            agent = live.fold.created.meta.get("agent")
            session.standing.agent = agent if isinstance(agent, str) else self.default
        if isinstance(session, HubSession) and isinstance(kept, dict):
            session.standing.restore(kept)
        return session

    def annotated(self, session: AgentSession, annotation: Annotation, *, removed: bool) -> None:
        if isinstance(session, HubSession):
            relay_annotation(session, annotation, removed=removed)

    def told_of(self, record: SessionRecord) -> dict[str, Any]:
        kept = record.meta.get(HUB)
        agent = kept.get("agent") if isinstance(kept, dict) else None
        return {**super().told_of(record), "agent": agent if isinstance(agent, str) else self.default}

    async def note(self, session: HubSession) -> None:
        """Keep which agent a session has, and which sessions there."""
        record = await self.store.get(session.id)
        if record is not None:
            kept = session.standing.to_keep()
            await self.store.update(session.id, RecordPatch(meta={**record.meta, HUB: kept}))

    def _checked_busy(self, busy: str) -> Delivery:
        if busy not in tuple(Delivery):
            raise LocalError(f"busy must be one of {', '.join(Delivery)}, got {busy!r}")
        return Delivery(busy)

    async def create(self, params: v2.NewSessionRequest, *, maker: Link | None = None) -> AgentSession:
        self.check_taking()
        with self.room.opening():
            return await self._create(params, maker)

    async def _create(self, params: v2.NewSessionRequest, maker: Link | None) -> AgentSession:
        name = self._chosen(params.meta)
        directories, servers = tuple(params.additional_directories), tuple(params.mcp_servers)
        provision = Provision(maker=maker)
        place = Place(params.cwd, directories, servers, provision, meta=without_ours(params.meta))
        upstream = opened = session = None
        try:
            upstream = await self.upstreams.take(name)
            opened = await self.open_new(upstream, place)
            session = await super().create(params, maker=maker)
            assert isinstance(session, HubSession)
            session.provide(provision)
            session.standing.agent = name
            course = upstream.course(opened)
            await session.standing.on(upstream, course, again=False, begun=session.note_start)
        except BaseException as error:  # also a client that is gone meanwhile
            provision.end()
            if session is not None:
                await self.release(session)
            elif upstream is not None:
                if opened is not None:
                    upstream.leave(upstream.course(opened))
                self.upstreams.let_go(upstream)
            if isinstance(error, AntiphonError | OSError) and not isinstance(error, StoreError):
                raise to_request_error(error) from error
            raise
        return session

    def about(self, params: v2.NewSessionRequest) -> dict[str, Any]:
        return {"agent": self._chosen(params.meta)}

    def learn(self, upstream: Upstream) -> None:
        """What an agent can take and offers is said to clients that come from here on (invariant 10)."""
        self.logins.follow(upstream)
        known = describe(upstream.client)
        self.known_agents.keep(upstream.name, known)
        self.offer(upstream.name, known)

    def offer(self, name: str, known: KnownAgent) -> None:
        """Say to clients that come from here on what is known of an agent."""
        self.logins.offer(name, known.read_logins(), known.abilities)
        if name == self.default:
            announce(self, known.abilities, inserts=known.inserts)

    def accepted_in(self, session: AgentSession) -> tuple[type, ...]:
        """What the agent of the session takes as it runs now, whatever clients were told. Where it does not
        run, it is asked when it does."""
        course = session.standing.course if isinstance(session, HubSession) else None
        if course is None:
            return (*ALWAYS, *CONTENT.values())
        able = course.session.abilities
        return (*ALWAYS, *(kind for name, kind in CONTENT.items() if getattr(able, name)))

    @property
    def may_take_mcp_over_acp(self) -> bool:
        """Until the agent was started, it is not known."""
        return self.mcp_over_acp or not self.known_agents.is_current(self.default)

    async def open_new(self, upstream: Upstream, place: Place) -> ClientSession:
        """A new session at an agent."""
        self.learn(upstream)
        return await self.logins.admitted(upstream, lambda: open_new(upstream, place))

    async def fork(
        self, params: v2.ForkSessionRequest, *, at: str | None = None, maker: Link | None = None
    ) -> AgentSession:
        self.check_taking()
        with self.room.opening():
            return await self._fork(params, at, maker)

    async def _fork(self, params: v2.ForkSessionRequest, at: str | None, maker: Link | None) -> AgentSession:
        source = await self.open(params.session_id)
        assert isinstance(source, HubSession)
        provision = Provision(maker=maker)
        there = await fork_there(source, params, provision, at=at)
        if there is not None:
            self.upstreams.join(there[0])
        try:
            if there is not None:
                await self._keep_options(source, there[1])
            session = await super().fork(params, at=at, maker=maker)
        except BaseException:
            provision.end()
            if there is not None:
                there[0].leave(there[1])
                self.upstreams.let_go(there[0])
            raise
        assert isinstance(session, HubSession)
        session.standing.agent, session.standing.mark = source.standing.agent, source.standing.mark
        if there is None:
            await self.note(session)  # whose agent it has is known, also if the hub ends before it is brought
        else:
            session.provide(provision)
            upstream, course = there
            course.drop_replay()
            await session.standing.on(upstream, course, again=False, begun=session.note_start)
        return session

    async def _keep_options(self, source: HubSession, fork: Course) -> None:
        """A fork at an agent gets the options of its source before anything is prompted there."""
        try:
            lost = await restore_options(fork.session, options_of(source.fold), reopened=True)
        except LinkLost as error:
            raise to_request_error(error) from error
        if lost:
            raise refusal(lost)
        fork.answer_with_options()

    async def create_subagent(
        self, parent: AgentSession, cwd: str, *, session_id: str | None = None
    ) -> AgentSession:
        with self.room.opening():
            return await super().create_subagent(parent, cwd, session_id=session_id)

    async def _reopen(self, session_id: str, voice: Voice | None) -> AgentSession:
        with self.room.opening():
            return await super()._reopen(session_id, voice)

    async def open(self, session_id: str, *, voice: Voice | None = None) -> AgentSession:
        session = await super().open(session_id, voice=voice)
        if isinstance(session, HubSession):
            self.resting.touch(session)
        return session

    async def release(self, session: AgentSession) -> None:
        if session.mcp_servers:
            self.servers[session.id] = session.mcp_servers
        await super().release(session)

    @property
    def live(self) -> list[HubSession]:
        """The sessions that are open here."""
        return [session for session in self._sessions.values() if isinstance(session, HubSession)]

    def _chosen(self, meta: dict[str, Any] | None) -> str:
        ours = (meta or {}).get(META_KEY)
        name = ours.get("agent") if isinstance(ours, dict) else None
        if name is None:
            return self.default
        if name not in self.agents:
            known = ", ".join(self.agents)
            raise InvalidParams(f"there is no agent {name!r} here; it is one of {known}")
        return str(name)

    async def set_up(self, session: AgentSession, params: v2.ResumeSessionRequest) -> None:
        """Who joins a session at work changes nothing of its setting; who wakes one up gives it."""
        if not (isinstance(session, HubSession) and session.attended_by_agent):
            await super().set_up(session, params)
