"""SessionOpener: opens, forks, loads and resumes sessions, in the agent's version.

An answer is handled in the lane of the session that it names: everything that the agent sent of the session
before the answer has been applied, and everything that comes after it finds the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec import structs

from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.bridge.losses import Report
from antiphon.client.protocol.calls import call_in_lane
from antiphon.client.protocol.dialect import AgentDialect
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.client.protocol.early_updates import EarlyUpdates
from antiphon.connection import Connection
from antiphon.errors import CallFailed, InvalidParams, LocalError, MethodNotFound
from antiphon.schema import v1, v2
from antiphon.schema.version import ours_in

EARLY = 10_000
EARLY_BYTES = 64 * 1024 * 1024
"""How many updates, and how many bytes of them, are kept for sessions that no answer has named yet."""

NewRequest = v2.NewSessionRequest | v2.ForkSessionRequest
Setup = NewRequest | v2.ResumeSessionRequest


class OpenedSession(Protocol):
    """A session that is being opened, or opened again."""

    id: str
    dialect: AgentDialect

    @property
    def config_options(self) -> Sequence[v2.SessionConfigOption]: ...

    @property
    def commands(self) -> Sequence[v2.AvailableCommand]: ...

    def set_up(self, request: Setup) -> None:
        """Remember the request, to resume the session with the same settings."""

    def opened(self, meta: dict[str, Any]) -> None:
        """The agent has answered, with this `_meta`."""

    def apply(self, update: v2.SessionUpdate) -> None: ...

    def begun(self) -> None:
        """A new session: the answer is applied, and what the agent sent before it comes now."""


S = TypeVar("S", bound=OpenedSession)


class SessionOpener:
    def __init__(self, connection: Connection, *, report: Report | None = None) -> None:
        self._connection = connection
        self._report = report
        self.v1_capabilities: v1.AgentCapabilities | None = None
        """The capabilities of a v1 agent; None if the agent speaks v2."""
        self._pending: list[NewRequest] = []
        """The requests for new sessions that are not answered."""
        self._early: EarlyUpdates[Callable[[], object]] = EarlyUpdates(most=EARLY, most_bytes=EARLY_BYTES)
        self._unnamed: list[Callable[[], object]] = []
        """What came before any update of a new session, and names no session."""
        self._awaited: list[asyncio.Future[None]] = []

    async def create(self, request: NewRequest, add: Callable[[str], S]) -> S:
        """Open a new session or a fork. `add` creates the session by its id, so that updates reach it."""
        params: Any = request
        forks = isinstance(request, v2.ForkSessionRequest)
        if self.v1_capabilities is not None:
            make = requests_v1.fork_session if forks else requests_v1.new_session
            params = self._v1_params(make, request, self.v1_capabilities)

        def answered(answer: Any) -> S:
            session = add(answer.session_id)
            session.set_up(request)
            self._apply_answer(session, answer)
            session.begun()
            unnamed, self._unnamed = self._unnamed, []
            for receive in (*unnamed, *self._early.take(session.id)):
                receive()
            self._wake()
            return session

        self._pending.append(request)
        try:
            lasting = "operationId" in ours_in(request.meta)
            return await call_in_lane(
                self._connection,
                "session/fork" if forks else "session/new",
                params,
                answered,
                lasting=lasting,
            )
        finally:
            self._pending = [each for each in self._pending if each is not request]
            if not self._pending:
                self._early.clear()
                self._unnamed.clear()
            self._wake()

    async def reopen(
        self, request: v2.ResumeSessionRequest, session: OpenedSession, *, first: bool = False
    ) -> None:
        """Load or resume a session. Updates that come before the answer are its history. `first`: the call
        takes a new link into use."""
        session.set_up(request)
        able = self.v1_capabilities
        if able is None:
            answered = partial(self._apply_answer, session)
            await call_in_lane(self._connection, "session/resume", request, answered, first=first)
            return
        try:
            await self._reopen_v1(request, session, able, first=first)
        except CallFailed as error:
            resumed = request.replay_from is None and able.session_capabilities.resume is not None
            if not (resumed and able.load_session and error.error.code == MethodNotFound.code):
                raise
            # Some agents advertise `session/resume` and do not have it: load the session instead.
            unable = structs.replace(able.session_capabilities, resume=None)
            self.v1_capabilities = structs.replace(able, session_capabilities=unable)
            await self._reopen_v1(request, session, self.v1_capabilities, first=first)

    async def _reopen_v1(
        self,
        request: v2.ResumeSessionRequest,
        session: OpenedSession,
        able: v1.AgentCapabilities,
        *,
        first: bool,
    ) -> None:
        assert isinstance(session.dialect, AgentDialectV1)
        params = self._v1_params(requests_v1.resume_session, request, able)
        session.dialect.upgrade.reopening()
        method = "session/load" if isinstance(params, v1.LoadSessionRequest) else "session/resume"
        await call_in_lane(
            self._connection, method, params, partial(self._apply_answer, session), first=first
        )

    async def continue_from_cursor(self, request: v2.ResumeSessionRequest, session: OpenedSession) -> None:
        """Continue a session over another link: updates follow those that the session has here."""
        able = self.v1_capabilities
        if able is None:
            await call_in_lane(
                self._connection, "session/resume", request, partial(_apply_facts, session), first=True
            )
            return
        dialect = session.dialect
        assert isinstance(dialect, AgentDialectV1)

        def answered(answer: v1.LoadSessionResponse) -> None:
            _apply_facts(session, dialect.upgrade.configuration.reopened(answer))

        params = self._v1_params(requests_v1.resume_session, request, able)
        await call_in_lane(self._connection, "session/load", params, answered, first=True)

    def _v1_params(self, make: Callable[..., Any], request: Any, capabilities: v1.AgentCapabilities) -> Any:
        try:
            return make(request, capabilities=capabilities, report=self._report)
        except InvalidParams as error:
            raise LocalError(error.detail) from None  # nothing was sent: the fault is local

    @property
    def only_pending(self) -> NewRequest | None:
        """The request for a new session that is not answered, if there is exactly one."""
        return self._pending[0] if len(self._pending) == 1 else None

    def keep(self, session_id: str, receive: Callable[[], object], *, size: int = 0) -> None:
        """Keep something of `size` bytes that came for an unknown session (SESS-08): `receive` is called once
        the session is opened, in the order in which things came. Nothing is kept while no request for a new
        session is pending."""
        if self._pending:
            self._early.put(session_id, receive, size)

    def keep_unnamed(self, receive: Callable[[], object]) -> None:
        """Keep something that names no session, while requests for new sessions are pending: `receive` is
        called once the next one is opened, at its place among the updates of that session."""
        if not self._pending or len(self._early) + len(self._unnamed) >= EARLY:
            return
        sessions = self._early.sessions
        for session_id in sessions:
            self._early.put(session_id, receive, 0)
        if not sessions:
            self._unnamed.append(receive)

    async def wait_until(self, known: Callable[[], bool]) -> None:
        """Wait until `known()` or until no request for a new session is pending."""
        while self._pending and not known():
            named: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._awaited.append(named)
            await named

    def _wake(self) -> None:
        awaited, self._awaited = self._awaited, []
        for named in awaited:
            if not named.done():
                named.set_result(None)

    def _apply_answer(self, session: OpenedSession, result: Any) -> None:
        """Apply the config options, commands and states in the answer."""
        if isinstance(session.dialect, AgentDialectV1):
            upgrade = session.dialect.upgrade
            if isinstance(result, v1.NewSessionResponse):
                result = upgrade.configuration.new_session(result)
            elif isinstance(result, v1.ForkSessionResponse):
                result = upgrade.configuration.fork_session(result)
            else:
                result, states = upgrade.reopened(result)
                for state in states:
                    session.apply(state)
        _apply_facts(session, result)


def _apply_facts(session: OpenedSession, result: Any) -> None:
    session.opened(result.meta or {})
    # The answer comes after the updates that were sent before it, so it is newer.
    if result.config_options and result.config_options != session.config_options:
        session.apply(v2.ConfigOptionUpdate(config_options=result.config_options))
    if result.available_commands and result.available_commands != session.commands:
        session.apply(v2.AvailableCommandsUpdate(available_commands=result.available_commands))
