"""HubSession: a session whose work is done by an agent behind the hub.

Towards clients it is a session of an agent, with a journal, a queue and questions. Where its agent is, what
is sent there and what comes back have modules of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from antiphon.agent.permits import EVERYTHING, Permit
from antiphon.agent.session_start import SessionStart
from antiphon.agent.turn import AgentTurn
from antiphon.engine.configuration import Value
from antiphon.engine.events import Delivery, RequestId
from antiphon.engine.prompts import Outcome
from antiphon.engine.who import Named
from antiphon.errors import (
    AntiphonError,
    CallFailed,
    InvalidParams,
    LinkLost,
    LocalError,
    SessionUnknown,
    StoreError,
)
from antiphon.hub.bringing import Place
from antiphon.hub.cancelling import Cancelling
from antiphon.hub.children import Children
from antiphon.hub.faults import to_request_error
from antiphon.hub.hearing import Hearing
from antiphon.hub.mcp_offers import Provision
from antiphon.hub.sending import Sending
from antiphon.hub.standing import Standing
from antiphon.live.session import LiveSession
from antiphon.schema import v2

if TYPE_CHECKING:
    from antiphon.hub.sessions import HubSessions

CLOSE_GRACE = 5.0


async def _nobody(_: AgentTurn) -> None:
    raise LocalError("the work of this session is done by an agent behind the hub")


class HubSession(Hearing):
    def __init__(self, live: LiveSession, hub: HubSessions) -> None:
        super().__init__(live, _nobody, hub)
        self._hub = hub
        self.unattended = hub.unattended
        self._named = {}
        self.provision = Provision(session=self)
        self.children = Children(self, hub)
        self.standing = Standing(self, hub)
        self.sending = Sending(self)
        self._cancelled = Cancelling(self)

    @property
    def place(self) -> Place:
        return Place(self.cwd, self.additional_directories, self.mcp_servers, self.provision)

    @property
    def introduction(self) -> dict[str, Any]:
        """Whose session it is: who asks and speaks in it is that agent, and not the hub."""
        if isinstance(self.parent, HubSession):
            return self.parent.introduction
        return {"agent": self.standing.agent}

    def provide(self, provision: Provision) -> None:
        """Take over what the agent was told before the session was there."""
        self.provision, provision.session = provision, self

    def note_start(self) -> None:
        """What the agent's answer says of the session has been told: the client that begins the session is
        sent everything that comes from here on."""
        self.start = SessionStart.of(self.fold)

    @property
    def leaves_it_to_agent(self) -> bool:
        course = self.standing.course
        return self._hub.busy is Delivery.AGENT and (course is None or course.inserts)

    @property
    def attended_by_agent(self) -> bool:
        """Whether an agent is at work for it."""
        return self.standing.course is not None

    # --- prompts -----------------------------------------------------------------------------------

    def submit(
        self,
        content: Sequence[v2.ContentBlock] | Raw,
        *,
        held: bool = True,
        delivery: Delivery = Delivery.QUEUE,
        operation_id: str | None = None,
        sender: Named | None = None,
        meta: dict[str, Any] | None = None,
        request_id: RequestId = None,
        permit: Permit = EVERYTHING,
    ) -> Outcome:
        self._hub.check_taking()
        if delivery is Delivery.AGENT and not self.leaves_it_to_agent:
            delivery = Delivery.QUEUE  # a v1 agent takes nothing while it works
        outcome = super().submit(
            content,
            held=held,
            delivery=delivery,
            operation_id=operation_id,
            sender=sender,
            meta=meta,
            request_id=request_id,
            permit=permit,
        )
        if outcome.events and outcome.entry is not None:
            self.sending.submitted(outcome.entry)
        return outcome

    def take_back(self, message_id: str, *, cancel_turn: bool = False) -> asyncio.Future[None] | None:
        return self.sending.take_back(message_id, cancel_turn=cancel_turn)

    def advance(self) -> None:
        """Send the next prompt, if one may be taken now."""
        if self.sending.busy or self.gone or self.closing or self._hub.stopping:
            return
        following = self.sending.next()
        if following is None:
            return
        if not following.cancel_first:
            self.sending.begin(following)
        else:
            self._cancel_turn()

    # --- cancelling and closing --------------------------------------------------------------------

    def cancel(self, *, message_id: str | None = None, meta: dict[str, Any] | None = None) -> None:
        sent = [entry.message_id for entry in self.fold.prompts.sent]
        others = self.fold.turn is not None and bool(self.fold.turn.prompts)
        if others and message_id in sent and self.take_back(str(message_id)) is not None:
            return  # the open turn is another prompt's, and goes on
        cancelled = self.fold.cancel(message_id=message_id)
        self.emit(cancelled.events)
        # What the agent has and has not answered, only the agent can give back (PROMPT-V2-33).
        meant = bool(sent) if message_id is None else message_id in sent
        about_to_begin = self.fold.turns.due and not cancelled.ignored
        if cancelled.turn is not None or about_to_begin or meant:
            self._cancel_turn(meta)
        elif message_id is None:
            # It may work without a word of its state: a v1 agent has none for a turn of its own, and a
            # cancel of what is idle is for an agent to ignore (PROMPT-V2-43).
            self._cancelled.tell_agent(meta)

    def _cancel_turn(self, meta: dict[str, Any] | None = None) -> None:
        if self._cancelling:
            return  # a second cancel would cut short what the agent does to end
        self._cancelling = True
        self.sending.withdraw()
        self._cancelled.turn(meta)

    @property
    def cancelling(self) -> bool:
        """Whether what is open was cancelled and has not ended."""
        return self._cancelling

    def turn_opened(self) -> None:
        if self._cancelling:
            self._cancelled.opened()

    def noticed_sent(self) -> None:
        """A prompt is not on its way to the agent any more."""
        if not (self.fold.turn is not None or self.fold.turns.due or self.fold.prompts.sent):
            self._cancelling = False  # what was cancelled never began
            self._ended.set()

    async def rest(self, deadline: float) -> None:
        """Wait until nothing is worked on, but not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                while self.fold.turn is not None or self.fold.turns.due or self.fold.prompts.sent:
                    self._ended.clear()
                    await self._ended.wait()

    async def tell_all(self, deadline: float) -> None:
        """Wait until every client has what happened so far on its way, but not for one that does not read."""
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                await asyncio.gather(*(voice.caught_up() for voice in self.attached()))

    async def cut(self) -> None:
        """What is at work is cut short, and says so."""
        await self.sending.stop()
        self._part()
        self.attempt(lambda: self.emit(self.fold.interrupt()))
        with suppress(StoreError, SessionUnknown):
            await self._live.durable()

    async def stop(self) -> None:
        """The hub ends, or lets the session go."""
        await self.cut()
        await self.behind.end()

    async def close(self) -> None:
        self.cancel()
        await self.rest(CLOSE_GRACE)
        await self.sending.stop()
        course, upstream, closed = self.standing.course, self.standing.upstream, False
        if course is not None and course.session.abilities.close:
            with suppress(AntiphonError, TimeoutError):
                async with asyncio.timeout(CLOSE_GRACE):
                    session = course.session
                    course.cut()
                    await session.close()
                    closed = True
        self._part()
        if course is not None and upstream is not None and not closed:
            with suppress(TimeoutError):  # SESS-38: nothing of it goes on once the close is answered
                async with asyncio.timeout(CLOSE_GRACE):
                    await upstream.work_ended(course.session.id)
        await self.behind.end()
        self.emit(self.fold.close())
        await self._live.durable()

    def _part(self) -> None:
        self.standing.part()
        self.sending.lost()

    # --- configuration -----------------------------------------------------------------------------

    async def take_config(self, id: str, value: Value, meta: dict[str, Any] | None) -> None:
        """The agent decides; what comes of it is told as any update of its own."""
        course = await self.standing.bring(may_lose_options=True)
        try:
            await course.session.set_config(id, value, meta=meta)
        except LocalError as error:
            raise InvalidParams(error.detail) from None
        except (CallFailed, LinkLost) as error:
            raise to_request_error(error) from error
