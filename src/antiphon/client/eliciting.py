"""Eliciting: what an agent may ask of the user here, said in `initialize` and answered when it comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from antiphon.bridge.upgrade_questions import elicitation as lifted
from antiphon.bridge.upgrade_questions import elicitation_answer
from antiphon.client.elicitation import Elicitation, Reply, modes
from antiphon.engine.elicitations import CREATE_ELICITATION, Elicited, counted, mode_of
from antiphon.errors import InvalidParams, LocalError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v2
from antiphon.schema.version import V1
from antiphon.schema.wire import Unknown

if TYPE_CHECKING:
    from antiphon.client.client import Client

logger = logging.getLogger("antiphon.client")

COMPLETE_ELICITATION = "elicitation/complete"
CANCEL = v2.ElicitationCancelAction()


class Eliciting:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._modes = modes(client.answers)
        self._visits: dict[str, Elicitation] = {}
        """The addresses that were asked for and are not known to be done with."""

    @property
    def capabilities(self) -> dict[str, Any]:
        """What is said of it in `initialize`, alike in both versions: nothing where nobody answers."""
        return {"elicitation": {mode: {} for mode in sorted(self._modes)}} if self._modes else {}

    @property
    def handlers(self) -> dict[str, Callable[[Any, Inbound], Awaitable[Any]]]:
        return {CREATE_ELICITATION: self._create}

    @property
    def unbegun(self) -> dict[str, Callable[[Any], Any]]:
        """What is answered where nobody was asked by the time it was taken back."""
        return {CREATE_ELICITATION: lambda _: elicitation_answer(CANCEL) if self._v1 else CANCEL}

    @property
    def _v1(self) -> bool:
        return self._client.agreement.version == V1

    @property
    def notifications(self) -> dict[str, Callable[[Any], None]]:
        return {COMPLETE_ELICITATION: self._complete}

    async def _create(self, params: Any, inbound: Inbound) -> Any:
        old = self._v1
        request: v2.CreateElicitationRequest = params
        if old and not isinstance(params, Unknown):
            request = lifted(params)
        if isinstance(request, Unknown):
            raise InvalidParams("an elicitation of an unknown mode")  # ELIC-09
        if mode_of(request) not in self._modes:
            raise InvalidParams(f"elicitations of mode {mode_of(request)!r} are not offered")  # ELIC-03
        reply = await self._answer(request, inbound)
        return elicitation_answer(reply) if old else reply

    async def _answer(self, request: Elicited, inbound: Inbound) -> Reply:
        if request.session_id is UNSET:
            return await self._of_request(request, inbound)
        session = self._client.find(request.session_id)
        if session is None and not self._client.has_left(request.session_id):
            session = await self._client.known(request.session_id)
            if session is None:
                raise InvalidParams("no such session is open here")
        if session is None:
            # It goes on without this client: any answer could decide it for those who are there.
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                if not inbound.cancelled:
                    raise  # the link ends
                return CANCEL
        assert session is not None
        reply: Reply = await session.ask_elicitation(request, inbound)
        return reply

    async def _of_request(self, request: Elicited, inbound: Inbound) -> Reply:
        deciding = asyncio.ensure_future(self.decide(Elicitation(self._client, request)))
        try:
            return await asyncio.shield(deciding)
        except asyncio.CancelledError:
            deciding.cancel()
            if not inbound.cancelled:
                raise  # the link ends
            return CANCEL

    async def decide(self, elicitation: Elicitation) -> Reply:
        """Ask whoever answers; what fails, or does not fit, is cancelled (ELIC-17)."""
        visit = elicitation.request if isinstance(elicitation.request, v2.ElicitationUrlMode) else None
        if visit is not None:
            self._visits[visit.elicitation_id] = elicitation
        given: v2.CreateElicitationResponse | None = None
        try:
            answers: Any = self._client.answers
            reply = await answers.elicit(elicitation)
            if not isinstance(reply, Reply | None):
                raise LocalError("an elicitation is answered with its `accept`, `decline` or `cancel`")
            given = CANCEL if reply is None else counted(elicitation.request, reply)
            if given is None:
                logger.error("an answer to an elicitation does not fit what was asked; it is cancelled")
        except Exception:
            logger.exception("an elicitation could not be answered; it is cancelled")
        finally:
            if visit is not None and not isinstance(given, v2.ElicitationAcceptAction):
                self._forget(visit.elicitation_id, elicitation)
        return CANCEL if given is None or isinstance(given, Unknown) else given

    def _forget(self, elicitation_id: str, elicitation: Elicitation) -> None:
        if self._visits.get(elicitation_id) is elicitation:
            del self._visits[elicitation_id]
        elicitation.complete(done=False)

    def _complete(self, params: Any) -> None:
        elicitation = self._visits.pop(params.elicitation_id, None)
        if elicitation is not None:  # ELIC-12: an id that is not known, or not any more, means nothing
            elicitation.complete(done=True)

    def lose(self) -> None:
        """The link has ended: nothing is told any more."""
        while self._visits:
            self._visits.popitem()[1].complete(done=False)
