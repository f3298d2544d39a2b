"""Opening: new sessions, and sessions that are opened again.

The answer takes its place in the lane of the session that it names: what the agent sent of the session before
it is known when it is there, and what comes behind it finds the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from msgspec import structs

from antiphon.bridge import requests_v1
from antiphon.client.early import EarlyUpdates
from antiphon.client.session import ClientSession
from antiphon.client.spoken import SpokenV1
from antiphon.connection import Connection
from antiphon.errors import CallFailed, InvalidParams, LocalError, MethodNotFound
from antiphon.schema import v1, v2
from antiphon.schema.version import ours_in

T = TypeVar("T")
EARLY = 10_000
EARLY_BYTES = 64 * 1024 * 1024
"""How many updates are kept for sessions that nobody has named yet, and of how many bytes."""

Add = Callable[[str, str], ClientSession]
"""Makes a session with an id and a folder, and lets updates reach it."""


class Opening:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.v1_capabilities: v1.AgentCapabilities | None = None
        """What a v1 agent can do; `None` for one that speaks v2."""
        self._pending: list[v2.NewSessionRequest | v2.ForkSessionRequest] = []
        """The new sessions that were asked for and are not named yet."""
        self._early: EarlyUpdates[Callable[[], object]] = EarlyUpdates(most=EARLY, most_bytes=EARLY_BYTES)
        self._unnamed: list[Callable[[], object]] = []
        """What came before anything of a new session, and names none."""
        self._awaited: list[asyncio.Future[None]] = []

    async def new(self, wanted: v2.NewSessionRequest | v2.ForkSessionRequest, add: Add) -> ClientSession:
        """A session that is new, or goes on from another one."""
        params: Any = wanted
        forks = isinstance(wanted, v2.ForkSessionRequest)
        if self.v1_capabilities is not None:
            make = requests_v1.fork_session if forks else requests_v1.new_session
            params = _ours(make, wanted, self.v1_capabilities)

        def named(answer: Any) -> ClientSession:
            session = add(answer.session_id, wanted.cwd)
            session.place.set_up(wanted)
            self._opened(session, answer)
            session.opened()
            unnamed, self._unnamed = self._unnamed, []
            for receive in (*unnamed, *self._early.take(session.id)):
                receive()
            self._wake()
            return session

        self._pending.append(wanted)
        try:
            again = "operationId" in ours_in(wanted.meta)
            return await self._call("session/fork" if forks else "session/new", params, named, lasting=again)
        finally:
            self._pending = [each for each in self._pending if each is not wanted]
            if not self._pending:
                self._early.clear()
                self._unnamed.clear()
            self._wake()

    async def again(
        self, wanted: v2.ResumeSessionRequest, session: ClientSession, *, first: bool = False
    ) -> None:
        """Load or resume: what comes until it is answered is what the session held."""
        session.place.set_up(wanted)
        able = self.v1_capabilities
        if able is None:
            named = partial(self._opened, session)
            await self._call("session/resume", wanted, named, first=first)
            return
        try:
            await self._again_v1(wanted, session, able, first=first)
        except CallFailed as error:
            resumed = wanted.replay_from is None and able.session_capabilities.resume is not None
            if not (resumed and able.load_session and error.error.code == MethodNotFound.code):
                raise
            # It advertises `session/resume` and does not have it, as some agents do: it can be loaded.
            unable = structs.replace(able.session_capabilities, resume=None)
            self.v1_capabilities = structs.replace(able, session_capabilities=unable)
            await self._again_v1(wanted, session, self.v1_capabilities, first=first)

    async def _again_v1(
        self,
        wanted: v2.ResumeSessionRequest,
        session: ClientSession,
        able: v1.AgentCapabilities,
        *,
        first: bool,
    ) -> None:
        assert isinstance(session.spoken, SpokenV1)
        params = _ours(requests_v1.resume_session, wanted, able)
        session.spoken.upgrade.reopening()
        method = "session/load" if isinstance(params, v1.LoadSessionRequest) else "session/resume"
        await self._call(method, params, partial(self._opened, session), first=first)

    async def from_cursor(self, wanted: v2.ResumeSessionRequest, session: ClientSession) -> None:
        """Over another link: what comes goes on from what the session has here."""
        able = self.v1_capabilities
        if able is None:
            await self._call("session/resume", wanted, partial(self._told, session), first=True)
            return
        spoken = session.spoken
        assert isinstance(spoken, SpokenV1)

        def named(answer: v1.LoadSessionResponse) -> None:
            self._told(session, spoken.upgrade.configuration.reopened(answer))

        await self._call("session/load", _ours(requests_v1.resume_session, wanted, able), named, first=True)

    @property
    def only_pending(self) -> v2.NewSessionRequest | v2.ForkSessionRequest | None:
        """The new session that was asked for and is not named yet, where there is exactly one."""
        return self._pending[0] if len(self._pending) == 1 else None

    def keep(self, session_id: str, receive: Callable[[], object], *, size: int = 0) -> None:
        """Something of so many bytes came of a session that is not known: perhaps not yet (SESS-08). Then
        `receive` is called once the session is there, in the order in which these came."""
        if self._pending:
            self._early.put(session_id, receive, size)

    def keep_unnamed(self, receive: Callable[[], object]) -> None:
        """Something came that names no session, while new sessions are asked for: `receive` is called once
        the next one is there, at its place among what came of that one."""
        if not self._pending or len(self._early) + len(self._unnamed) >= EARLY:
            return
        sessions = self._early.sessions
        for session_id in sessions:
            self._early.put(session_id, receive, 0)
        if not sessions:
            self._unnamed.append(receive)

    async def until(self, known: Callable[[], bool]) -> None:
        """Wait until something is known of a new session, or no new session is asked for."""
        while self._pending and not known():
            named: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._awaited.append(named)
            await named

    def _wake(self) -> None:
        awaited, self._awaited = self._awaited, []
        for named in awaited:
            if not named.done():
                named.set_result(None)

    async def _call(
        self,
        method: str,
        params: Any,
        named: Callable[[Any], T],
        *,
        first: bool = False,
        lasting: bool = False,
    ) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def settled(outcome: Any) -> None:
            if done.done():
                return
            try:
                if isinstance(outcome, Exception):
                    raise outcome
                done.set_result(named(outcome))
            except Exception as error:
                done.set_exception(error)

        call = self._connection.begin(method, params, settled, first=first, lasting=lasting)
        try:
            return await done
        except asyncio.CancelledError:
            self._connection.abandon(call)
            raise

    def _opened(self, session: ClientSession, result: Any) -> None:
        """What the answer tells beside the session's id."""
        session.place.opened(result.meta)
        if isinstance(session.spoken, SpokenV1):
            upgrade = session.spoken.upgrade
            if isinstance(result, v1.NewSessionResponse):
                result = upgrade.configuration.new_session(result)
            elif isinstance(result, v1.ForkSessionResponse):
                result = upgrade.configuration.fork_session(result)
            else:
                result, states = upgrade.reopened(result)
                for state in states:
                    session.tell(state)
        self._told(session, result)

    def _told(self, session: ClientSession, result: Any) -> None:
        session.place.opened(result.meta)
        session.opened_meta = result.meta or {}
        # The answer has its place behind what was told before it, so it is newer.
        if result.config_options and result.config_options != session.config_options:
            session.tell(v2.ConfigOptionUpdate(config_options=result.config_options))
        if result.available_commands and result.available_commands != session.commands:
            session.tell(v2.AvailableCommandsUpdate(available_commands=result.available_commands))


def _ours(make: Callable[..., Any], wanted: Any, capabilities: v1.AgentCapabilities) -> Any:
    try:
        return make(wanted, capabilities=capabilities)
    except InvalidParams as error:
        raise LocalError(error.detail) from None  # nothing was sent: it is ours
