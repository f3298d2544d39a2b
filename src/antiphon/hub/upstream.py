"""Upstream: one agent at work behind the hub, and the sessions at it that hub sessions stand on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from antiphon.client import Client, ClientSession, ClientTurn, Permission, SessionEvent, connect
from antiphon.client.elicitation import Elicitation
from antiphon.client.workspace import Workspace
from antiphon.errors import AntiphonError, LinkLost
from antiphon.schema import v2

logger = logging.getLogger("antiphon.hub")

Target = Sequence[str] | str | Any
"""What `connect` reaches: a command, an address, or an agent in this process."""


class Hears(Protocol):
    """A hub session, as what its agent does reaches it: in the lane, at once."""

    def agent_took(self, turn: ClientTurn) -> None: ...
    def agent_did(self, event: SessionEvent) -> None: ...
    def agent_left(self, reason: str) -> None: ...
    def agent_paced(self) -> Awaitable[None] | None: ...
    async def agent_asks(self, permission: Permission) -> str | None: ...
    async def agent_elicits(self, elicitation: Elicitation) -> Any: ...


class Course:
    """What comes of one session at an agent. It is kept until a hub session takes it."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self._early: list[SessionEvent] = []
        self._hears: Hears | None = None
        self.ended: str | None = None

    def lead(self, hears: Hears, *, early: bool) -> None:
        """To this session, from here on; with `early`, also what came until now."""
        self._hears = hears
        kept, self._early = self._early, []
        if early:
            for event in kept:
                hears.agent_did(event)
        if self.ended is not None:
            hears.agent_left(self.ended)

    def cut(self) -> None:
        """To nobody any more."""
        self._hears = None
        self.ended = self.ended or "the hub let it go"

    @property
    def hears(self) -> Hears | None:
        return self._hears

    # What the client tells

    def taken(self, turn: ClientTurn) -> None:
        if self._hears is not None:
            self._hears.agent_took(turn)

    def happened(self, event: SessionEvent) -> None:
        if self._hears is not None:
            self._hears.agent_did(event)
        elif self.ended is None:
            self._early.append(event)

    def left(self, reason: LinkLost | str) -> None:
        if self.ended is None:
            self.ended = reason.reason if isinstance(reason, LinkLost) else reason
            if self._hears is not None:
                self._hears.agent_left(self.ended)

    def pace(self) -> Awaitable[None] | None:
        return None if self._hears is None else self._hears.agent_paced()


class Upstream:
    """An agent that was started, owned by one task from its start to its end."""

    elicits = ("form", "url")

    def __init__(self, name: str, target: Target, *, env: Mapping[str, str], version: int | None) -> None:
        self.name = name
        self._target = target
        self._env = env
        self._version = version
        self._courses: dict[str, Course] = {}
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.get_running_loop().create_task(self._run())
        self.client: Client

    async def started(self) -> Client:
        """Its client, once it is initialized. Raises what kept it from that."""
        self.client = await asyncio.shield(self._ready)
        return self.client

    @property
    def alive(self) -> bool:
        return not self._task.done() and not self._stop.is_set()

    async def _run(self) -> None:
        command = isinstance(self._target, list | tuple)
        try:
            async with connect(
                self._target,
                version=self._version,
                answers=self,
                name="antiphon-hub",
                env=self._env if command else None,
                workspace=Workspace(),
                relay=self._follow,
                on_stderr=self._log,
            ) as client:
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
            if not self._ready.done():
                self._ready.cancel()

    def _follow(self, session: ClientSession) -> Course:
        course = self._courses[session.id] = Course(session)
        return course

    def course(self, session: ClientSession) -> Course:
        return self._courses[session.id]

    def stop(self) -> asyncio.Task[None]:
        """Let it end; the task is done when nothing of it is left."""
        self._stop.set()
        if not self._ready.done():
            self._task.cancel()
        return self._task

    def _log(self, line: str) -> None:
        logger.info("%s: %s", self.name, line)

    # What the agent asks

    def _asked(self, session: ClientSession) -> tuple[Hears | None, bool]:
        """Who is asked in whose name: a session that works for another one asks through it."""
        own = session
        while own.parent is not None:
            own = own.parent
        course = self._courses.get(own.id)
        return None if course is None else course.hears, own is session

    async def decide(self, permission: Permission) -> str | None:
        hears, _ = self._asked(permission.session)
        return None if hears is None else await hears.agent_asks(permission)

    async def elicit(self, elicitation: Elicitation) -> Any:
        session = elicitation.session
        hears = None if session is None else self._asked(session)[0]
        return v2.ElicitationCancelAction() if hears is None else await hears.agent_elicits(elicitation)
