"""ElicitationRequests: handles `elicitation/create` and `elicitation/complete` of one agent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import UNSET

from antiphon.bridge.upgrade.questions import elicitation as elicitation_v2
from antiphon.bridge.upgrade.questions import elicitation_answer as answer_v1
from antiphon.client.elicitation import Elicitation, Reply
from antiphon.client.protocol.agent_connection import AgentConnection
from antiphon.engine.questions import CREATE_ELICITATION, Elicited, counted, mode_of
from antiphon.errors import InvalidParams, LocalError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.schema.wire import Unknown

logger = logging.getLogger("antiphon.client")

COMPLETE_ELICITATION = "elicitation/complete"
CANCEL = v2.ElicitationCancelAction()


Answer = Callable[[Elicitation], Awaitable[Any]]


class ElicitationRequests:
    def __init__(
        self,
        modes: frozenset[str],
        answer: Answer,
        agent: Callable[[], AgentConnection[Any]],
    ) -> None:
        """modes: the modes that can be answered.
        answer: answers an elicitation that names no session.
        agent: returns the connection, once there is one."""
        self._modes = modes
        self._answer_outside = answer
        self._agent = agent
        self._visits: dict[str, Elicitation] = {}
        """The addresses that the agent has not reported as completed."""

    @property
    def capabilities(self) -> dict[str, Any]:
        """The part of `initialize`, alike in both versions; empty if nobody answers."""
        return {"elicitation": {mode: {} for mode in sorted(self._modes)}} if self._modes else {}

    @property
    def handlers(self) -> dict[str, Callable[[Any, Inbound], Awaitable[Any]]]:
        return {CREATE_ELICITATION: self._create}

    @property
    def unbegun(self) -> dict[str, Callable[[Any], Any]]:
        """The answer to a request that was withdrawn before it began."""
        return {CREATE_ELICITATION: lambda _: answer_v1(CANCEL) if self._agent().speaks_v1 else CANCEL}

    @property
    def notifications(self) -> dict[str, Callable[[Any], None]]:
        return {COMPLETE_ELICITATION: self._complete}

    async def _create(self, params: Any, inbound: Inbound) -> Any:
        old = self._agent().speaks_v1
        request: v2.CreateElicitationRequest = params
        if old and not isinstance(params, Unknown):
            request = elicitation_v2(params)
        if isinstance(request, Unknown):
            raise InvalidParams(f"unknown elicitation mode {request.get('mode')!r}")  # ELIC-09
        if mode_of(request) not in self._modes:
            raise InvalidParams(f"elicitations of mode {mode_of(request)!r} are not offered")  # ELIC-03
        reply = await self._answer(request, inbound)
        return answer_v1(reply) if old else reply

    async def _answer(self, request: Elicited, inbound: Inbound) -> Reply:
        if request.session_id is UNSET:
            return await self._answer_for_request(request, inbound)
        session = await self._agent().find_asking(request.session_id, inbound)
        if session is None:
            return CANCEL
        reply: Reply = await session.questions.ask_elicitation(request, inbound)
        return reply

    async def _answer_for_request(self, request: Elicited, inbound: Inbound) -> Reply:
        elicitation = Elicitation(self._agent().agent_name, request)
        deciding = asyncio.ensure_future(self.decide(elicitation, self._answer_outside))
        try:
            return await asyncio.shield(deciding)
        except asyncio.CancelledError:
            deciding.cancel()
            if not inbound.cancelled:
                raise  # the link ends
            return CANCEL

    async def decide(self, elicitation: Elicitation, answer: Answer) -> Reply:
        """Ask for an answer. Cancel if that fails or the answer does not fit the form (ELIC-17)."""
        visit = elicitation.request if isinstance(elicitation.request, v2.ElicitationUrlMode) else None
        if visit is not None:
            self._visits[visit.elicitation_id] = elicitation
        given: v2.CreateElicitationResponse | None = None
        try:
            reply = await answer(elicitation)
            if not isinstance(reply, Reply | None):
                raise LocalError(
                    f"an elicitation is answered with its accept, decline or cancel, got {reply!r}"
                )
            given = CANCEL if reply is None else counted(elicitation.request, reply)
            if given is None:
                logger.error("elicitation answer does not fit the form; the elicitation is cancelled")
        except Exception:
            logger.exception("elicitation decider failed; the elicitation is cancelled")
        finally:
            if visit is not None and not isinstance(given, v2.ElicitationAcceptAction):
                self._forget(visit.elicitation_id, elicitation)
        return CANCEL if given is None or isinstance(given, Unknown) else given

    def _forget(self, elicitation_id: str, elicitation: Elicitation) -> None:
        if self._visits.get(elicitation_id) is elicitation:
            del self._visits[elicitation_id]
        elicitation._complete(done=False)

    def _complete(self, params: Any) -> None:
        elicitation = self._visits.pop(params.elicitation_id, None)
        if elicitation is not None:  # ELIC-12: an id that is not known, or not any more, means nothing
            elicitation._complete(done=True)

    def link_lost(self) -> None:
        """The agent cannot report completions any more."""
        while self._visits:
            self._visits.popitem()[1]._complete(done=False)
