"""QuestionDecider: passes the questions of sessions to the deciders of a client."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from antiphon.client.elicitation import Elicitation
from antiphon.client.elicitation_requests import ElicitationRequests
from antiphon.client.permissions import Permission
from antiphon.client.session.session import ClientSession
from antiphon.engine.questions import Elicited
from antiphon.schema import v2

logger = logging.getLogger("antiphon.client")


class QuestionDecider:
    """Implements `Decider`."""

    def __init__(
        self,
        find: Callable[[str], ClientSession | None],
        answers: Callable[[], Any],
        elicitations: ElicitationRequests,
    ) -> None:
        """`answers` returns a `PermissionDecider`, which may be an `ElicitationDecider` too."""
        self._find = find
        self._answers = answers
        self._elicitations = elicitations

    async def decide_permission(
        self, session_id: str, question_id: str, request: v2.RequestPermissionRequest
    ) -> v2.RequestPermissionResponse | None:
        session = self._find(session_id)
        if session is None:
            return None
        permission = Permission(session, question_id, request)
        try:
            chosen = permission.find_option(await self._answers().decide(permission))
        except Exception:
            logger.exception("permission decider failed; the permission is not given")
            return None
        if chosen is None:
            return None
        outcome = v2.SelectedPermissionOutcome(option_id=chosen.option_id, meta=permission.meta)
        return v2.RequestPermissionResponse(outcome=outcome)

    async def decide_elicitation(
        self, session_id: str, question_id: str, request: Elicited
    ) -> v2.CreateElicitationResponse | None:
        session = self._find(session_id)
        if session is None:
            return None
        elicitation = Elicitation(session.agent_name, request, session=session, question_id=question_id)
        return await self._elicitations.decide(elicitation, self._answers().elicit)
