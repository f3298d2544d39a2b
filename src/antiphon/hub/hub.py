"""Hub: towards its clients an agent whose sessions are worked on by agents behind it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from antiphon.agent import Agent, AgentSession
from antiphon.agent.agent import CONTENT
from antiphon.engine.events import Updated
from antiphon.errors import AntiphonError, InvalidParams, LocalError, RequestError, StoreError
from antiphon.hub.access import Gate, new_token
from antiphon.hub.bringing import Place, open_new
from antiphon.hub.orphans import MARK, reap
from antiphon.hub.session import HubSession, told
from antiphon.hub.upstream import Target, Upstream
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.schema.version import META_KEY
from antiphon.stores.base import RecordPatch, Store
from antiphon.transports.base import Transport
from antiphon.transports.loop import run

logger = logging.getLogger("antiphon.hub")

GRACE = 10.0
"""Seconds that turns at work get to end when the hub is to end."""
START = 30.0
"""Seconds that a client waits for the agent's abilities before it is told of none."""
HUB = "hub"
"""Where a session's record says which agent it has, among its `meta`."""
CUT = v2.Notice(
    severity=v2.NoticeSeverity.WARNING,
    title="The hub was restarted",
    description="What was at work in this session was cut short.",
)


class Hub(Agent):
    """`Hub(["claude-agent-acp"], store=SQLiteStore("sessions.db")).run("127.0.0.1:8642")`."""

    def __init__(
        self,
        agents: Target | Mapping[str, Target],
        *,
        store: Store | None = None,
        token: str | None = None,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        unattended: str = "wait",
        turn_complete: bool = False,
        version: int | None = None,
        mark: str | None = None,
        grace: float = GRACE,
    ) -> None:
        """`agents`: a command, or several by name, the first of which works unless a client chooses another.
        `token` lets clients in; without one it is made up (`hub.token`). `hosts` and `origins` are names and
        pages, beside its own, by which it may be reached. `unattended`: what becomes of a question with
        nobody there, `wait` or `reject`. `turn_complete` sends that signal to every v1 client. `version`
        insists on ACP 1 or 2 towards the agents. `mark` names this hub over its lives: what an earlier one
        left running is ended. `grace` is how many seconds turns get to end when the hub is to end."""
        if unattended not in ("wait", "reject"):
            raise LocalError(f"a question with nobody there can `wait` or be a `reject`, not {unattended!r}")
        super().__init__("antiphon-hub", version="0.1.0", store=store, turn_complete=turn_complete)
        named = agents if isinstance(agents, Mapping) else {_called(agents): agents}
        self.agents = {name: _target(target) for name, target in named.items()}
        self.default = next(iter(self.agents), "")
        self.token = token or new_token()
        self.unattended = unattended
        self.stopping = False
        self.port: int | None = None
        """Where it listens."""
        self._gate = Gate(self.token, hosts=hosts, origins=origins)
        self._speaks = version
        self._mark = mark
        self._grace = grace
        self._upstreams: set[Upstream] = set()
        self._spare: Upstream | None = None
        self._learning: asyncio.Task[None] | None = None
        self.offers = {"hub": True, "agents": list(self.agents)}

    # --- life --------------------------------------------------------------------------------------

    def run(self, address: str | None = None, *, on_ready: Callable[[], None] = lambda: None) -> None:
        """Serve at an address, such as `127.0.0.1:8642`, until SIGTERM or SIGINT: then nothing new is taken,
        what is at work gets some time, and every agent ends. `on_ready` is called once clients can come."""
        host, port = read_address(address or "127.0.0.1:8642")

        async def main() -> None:
            stopped = asyncio.Event()
            loop = asyncio.get_running_loop()
            task = asyncio.current_task()
            assert task is not None

            def stop() -> None:
                task.cancel() if stopped.is_set() else stopped.set()  # a second time: at once

            if sys.platform != "win32":
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.add_signal_handler(number, stop)
            async with self.listening(host, port):
                on_ready()
                await stopped.wait()
                await self.settle()

        with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
            run(main())

    @asynccontextmanager
    async def listening(self, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Hub]:
        """Serve WebSockets at `/acp` inside the block; `hub.port` is the one it got."""
        from antiphon.transports.websocket import websocket_server

        async with self.serving():
            try:
                server = websocket_server(self.serve, host, port, check=self._gate.check)
                async with server as listens:
                    self.port = listens.port
                    yield self
            except OSError as error:
                raise LocalError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Agent]:
        if not self._lives:
            if self._mark is not None:
                await asyncio.to_thread(reap, self._mark)
            await self._end_what_was_cut()
        async with super().serving():
            try:
                yield self
            finally:
                if self._lives == 1:
                    await self._put_away()

    async def settle(self) -> None:
        """Take nothing new, and wait until what is at work has ended, but not for long."""
        self.stopping = True
        sessions = [session for session in self._sessions.values() if isinstance(session, HubSession)]
        await asyncio.gather(*(session.rest(self._grace) for session in sessions))
        await asyncio.gather(*(session.cut() for session in sessions if session.fold.turn is not None))

    async def _put_away(self) -> None:
        """Every agent at once: one that takes its time does not hold up the others."""
        self.stopping = True
        if self._learning is not None:
            self._learning.cancel()
        for session in tuple(self._sessions.values()):
            await self.release(session)
        tasks = [upstream.stop() for upstream in self._upstreams]
        if tasks:
            await asyncio.wait(tasks)

    async def _end_what_was_cut(self) -> None:
        """After a kill: what the last life had at work ends as interrupted (invariant 4)."""
        cursor: str | None = None
        while True:
            listing = await self.store.list(after=cursor)
            for record in listing.records:
                if record.state != "idle":
                    with contextlib.suppress(AntiphonError):  # open in another process, or unreadable
                        async with self.aside(record.session_id) as live:
                            live.emit([*live.fold.interrupt(), Updated.of(CUT)])
            cursor = listing.next
            if cursor is None:
                return

    def check_taking(self) -> None:
        if self.stopping:
            raise RequestError(AntiphonError.code, "The hub is about to end", data={"reason": "shutdown"})

    async def serve(self, transport: Transport, who: str = "owner") -> None:
        """Serve one client until it is gone."""
        await self._learn()
        await super().serve(transport)

    # --- agents ------------------------------------------------------------------------------------

    async def start(self, name: str) -> Upstream:
        """An agent of this name that nobody uses yet, initialized."""
        spare, self._spare = self._spare, None
        if spare is not None and spare.name == name and spare.alive:
            return spare
        self._spare = spare
        if name not in self.agents:
            raise RequestError(InvalidParams.code, f"this hub has no agent {name!r}")
        env = {} if self._mark is None else {MARK: self._mark}
        upstream = Upstream(name, self.agents[name], env=env, version=self._speaks)
        self._upstreams.add(upstream)
        try:
            await upstream.started()
        except BaseException:
            self.let_go(upstream)
            raise
        return upstream

    def let_go(self, upstream: Upstream) -> None:
        upstream.stop().add_done_callback(lambda _: self._upstreams.discard(upstream))

    async def _learn(self) -> None:
        """What the agent can take is known before the first client asks (invariant 10)."""
        if not self.default or self.stopping:
            return
        if self._learning is None:
            self._learning = asyncio.get_running_loop().create_task(self._learn_now())
        await asyncio.wait([self._learning], timeout=START)

    async def _learn_now(self) -> None:
        try:
            spare = await self.start(self.default)
        except (AntiphonError, OSError) as error:
            logger.warning("the agent %s cannot be started: %s", self.default, error)
            return
        able = spare.client.abilities
        accepts = [name for name in CONTENT if getattr(able, name)]
        self.accepts = frozenset(accepts)
        self.accepted = (v2.TextContent, v2.ResourceLink, *(CONTENT[name] for name in accepts))
        self._spare = spare

    # --- sessions ----------------------------------------------------------------------------------

    def _make(self, live: LiveSession) -> AgentSession:
        return HubSession(live, self)

    async def _enter(self, live: LiveSession) -> AgentSession:
        session = await super()._enter(live)
        record = await self.store.get(live.session_id)
        kept = None if record is None else record.meta.get(HUB)
        if isinstance(session, HubSession) and isinstance(kept, dict):
            session.agent_name = kept.get("agent", self.default)
            session.chain = list(kept.get("sessions", ()))
        return session

    async def note(self, session: HubSession) -> None:
        """Keep which agent a session has, and which sessions there."""
        record = await self.store.get(session.id)
        if record is not None:
            kept = {"agent": session.agent_name, "sessions": session.chain}
            await self.store.update(session.id, RecordPatch(meta={**record.meta, HUB: kept}))

    async def create(self, params: v2.NewSessionRequest) -> AgentSession:
        self.check_taking()
        name = self._chosen(params.meta)
        place = Place(params.cwd, tuple(params.additional_directories), tuple(params.mcp_servers))
        upstream = None
        try:
            upstream = await self.start(name)
            opened = await open_new(upstream.client, place)
            session = await super().create(params)
            assert isinstance(session, HubSession)
            session.agent_name = name
            await session.stand_on(upstream, upstream.course(opened), again=False)
        except BaseException as error:  # also a client that is gone meanwhile
            if upstream is not None:
                self.let_go(upstream)
            if isinstance(error, AntiphonError | OSError) and not isinstance(error, StoreError):
                raise told(error) from error
            raise
        return session

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


def _called(target: Target) -> str:
    words = _target(target)
    return words[0].rpartition("/")[2] if isinstance(words, list) else "agent"


def _target(target: Target) -> Target:
    if isinstance(target, str):
        return target if target.startswith(("ws://", "wss://")) else shlex.split(target)
    return list(target) if isinstance(target, list | tuple) else target


def read_address(address: str) -> tuple[str, int]:
    """`HOST:PORT`, or only one of them."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise LocalError(f"{address!r} is no address to serve at: it looks like 127.0.0.1:8642")
    return host.strip("[]") or "127.0.0.1", int(port)
