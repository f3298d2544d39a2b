"""Link: one client's connection to an agent, from `initialize` to its end.

What the client asks is read into v2, done on the sessions of the agent, and answered in the client's dialect.
What each method does stands in a module of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import structs

from antiphon.agent import (
    annotation_methods,
    answers,
    attaching,
    authentication,
    cancelling,
    configuring,
    extending,
    forking,
    keeping,
    mcp,
    prompting,
    providers,
    queueing,
    sessions,
    subagents,
)
from antiphon.agent.guests import Guest, read_guest
from antiphon.agent.opening import open_link
from antiphon.agent.permits import EVERYTHING, Permit, heard, permitted
from antiphon.agent.session import AgentSession
from antiphon.bridge.dialects import MESSAGE_DELETED, writer
from antiphon.bridge.elicitations import modes
from antiphon.connection import Connection, Role
from antiphon.engine.annotations import ANNOTATION_UPDATES
from antiphon.engine.questions import Question
from antiphon.errors import LinkLost, ResourceNotFound
from antiphon.jsonrpc.peer import Inbound
from antiphon.live.voice import Voice
from antiphon.schema import v1, v2
from antiphon.schema.version import V1, Agreement, Extras, Offer, with_ours
from antiphon.transports.base import Transport

if TYPE_CHECKING:
    from antiphon.agent.agent import Agent

LAST_UPDATES = 2.0
"""Seconds that a client gets to read the last updates of a session that is closed."""

Handlers = dict[str, Callable[[Any, Inbound], Awaitable[Any]]]
"""Methods, and what answers them."""

_serials = itertools.count()


class Link:
    def __init__(self, agent: Agent, transport: Transport, permit: Permit = EVERYTHING) -> None:
        self.agent = agent
        self.permit = permit
        self.serial = next(_serials)
        """Those who came first have the lower ones."""
        self.voices: dict[str, Voice] = {}
        """The sessions that this client is attached to."""
        self.moving = asyncio.Lock()
        """Held while an attachment takes the place of another: of two that do, the later one stays."""
        self.v1_client: v1.ClientCapabilities | None = None
        self.v2_client: v2.ClientCapabilities | None = None
        """What the client said it can do, in the version it speaks."""
        self._guest: Guest | None = None
        self.access = authentication.Access(self)
        self.calling = mcp.Calling(lambda: self.connection)
        """The MCP servers that this client offers."""
        self.connection = Connection(
            transport,
            role=Role.AGENT,
            on_initialize=self._initialize,
            requests=self._guarded(
                {
                    **authentication.handlers(self),
                    **sessions.handlers(self),
                    **attaching.handlers(self),
                    **keeping.handlers(self),
                    **forking.handlers(self),
                    **prompting.handlers(self),
                    **configuring.handlers(self),
                    **providers.handlers(self),
                    **queueing.handlers(self.voice, permit),
                    **cancelling.handlers(self),
                    **answers.handlers(self),
                    **annotation_methods.handlers(self),
                }
            ),
            notifications={
                "session/cancel": heard(
                    self, "session/cancel", subagents.cancel_guarded(self, prompting.cancel(self))
                ),
                "mcp/message": heard(self, "mcp/message", self.calling.notified),
            },
        )
        self.connection.handlers.on_extension = self._guarded({"_": extending.answering(self)})["_"]
        self.connection.handlers.on_extension_notified = extending.hearing(self)

    def _guarded(self, handlers: Handlers) -> Handlers:
        """What each method is checked for before it is done: from the outside in."""
        inner = authentication.guarded(self, subagents.guarded(self, mcp.guarded(self, handlers)))
        return permitted(self, inner)

    async def run(self) -> None:
        """Serve the client until it is gone; its sessions stay."""
        async with self.connection:
            try:
                await self.connection.wait_closed()
            finally:
                await self.leave(*self.voices)

    async def _initialize(self, offer: Offer, params: Any) -> tuple[Agreement, Any]:
        if offer.version == V1:
            client = self.v1_client = params.client_capabilities or v1.ClientCapabilities()
        else:
            client = self.v2_client = params.capabilities or v2.ClientCapabilities()
        self._guest = read_guest(offer, params, self._guest)
        agreement, result = open_link(self.agent, offer)
        told = dict(self.permit.tells)
        if agreement.extras.presence:
            told["clientId"] = self.guest.who.client_id
        if told:
            result = structs.replace(result, meta=with_ours(result.meta, **told))
        return agreement, self.access.offer(result, client)

    @property
    def guest(self) -> Guest:
        """Who the client is, to the others."""
        assert self._guest is not None
        return self._guest

    @property
    def v1(self) -> bool:
        assert self.connection.agreement is not None
        return self.connection.agreement.version == V1

    # --- attachments -------------------------------------------------------------------------------

    def new_voice(self, session_id: str, guest: Guest | None = None) -> Voice:
        guest = guest or self.guest
        agreement = self.connection.agreement
        assert agreement is not None
        speaks = writer(agreement, capabilities=self.v1_client, extensions=_extensions(agreement.extras))
        return Voice(
            session_id,
            self.connection,
            speaks,
            extras=agreement.extras,
            modes=self.modes,
            who=guest.who,
            client_version=guest.version,
            answers=partial(self._answers, session_id),
            counts=self.permit.stands,
            credential=self.permit.credential,
        )

    def _answers(self, session_id: str, question: Question) -> bool:
        session = self.agent.find(session_id)
        return session is not None and self.permit.answers(self, session, question)

    async def ask(self, method: str, params: Any) -> Any:
        """Call the client. What one says that is about to be sent away is not heard: it raises `LinkLost`."""
        result = await self.connection.call(method, params)
        if not self.permit.stands():
            raise LinkLost("its client may not answer any more")
        return result

    @property
    def modes(self) -> frozenset[str]:
        """The modes of elicitations that the client takes."""
        return modes(self.v1_client or self.v2_client)

    def voice(self, session_id: str) -> tuple[Voice, AgentSession]:
        """This client's attachment to a session, and the session."""
        voice, session = self.voices.get(session_id), self.agent.find(session_id)
        if voice is None or session is None or session.closing or not voice.follows(session.live):
            # RPC-25, SESS-56: a session that was not opened here, or is being closed, is not active here.
            raise ResourceNotFound("no such session is active here", data={"sessionId": session_id})
        return voice, session

    def closing_voice(self, session_id: str) -> Voice | None:
        """This client's attachment to a session that is being closed."""
        session = self.agent.find(session_id)
        return self.voices.get(session_id) if session is not None and session.closing else None

    def follows(self, session_id: str) -> bool:
        return session_id in self.voices

    async def dismiss(self, session_id: str) -> None:
        """The session is over: its client gets the last of it, if it reads, and leaves."""
        voice = self.voices.get(session_id)
        if voice is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_UPDATES):
                    await voice.caught_up()  # SESS-40: the last updates come before the answer
            await self.leave(session_id, closed=True)

    async def leave(self, *session_ids: str, closed: bool = False) -> None:
        """Leave sessions, which are `closed` or go on without this client. Its prompts are answered first:
        nobody else does that once it is not attached any more."""
        async with self.moving:  # an attachment that is being moved is left where it arrives
            for session_id in subagents.with_children(self, session_ids):
                voice = self.voices.pop(session_id, None)
                if voice is not None:
                    session = self.agent.find(session_id)
                    if session is not None:
                        session.left()
                    voice.part(closed=closed)
                    await voice.stop()


def _extensions(extras: Extras) -> frozenset[str]:
    """The updates of our own that stand in the journal and that a client asked for."""
    asked = ANNOTATION_UPDATES if extras.annotations else frozenset()
    return asked | {MESSAGE_DELETED} if extras.message_deleted else asked
