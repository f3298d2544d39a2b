"""Asking: the questions that one client was asked and has not answered.

A question is put at its place in the stream, so that `requires_action` never comes before what it waits for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from msgspec import structs

from antiphon.bridge.dialects import Writer
from antiphon.bridge.questions import CANCELLED, answered
from antiphon.connection import Connection
from antiphon.engine.events import present
from antiphon.engine.questions import (
    CREATE_ELICITATION,
    REQUEST_PERMISSION,
    Question,
    elicitation_of,
    mode_of,
)
from antiphon.errors import CallFailed, LinkLost, RequestCancelled
from antiphon.jsonrpc.peer import Call
from antiphon.schema.version import with_ours


class AskedQuestions:
    """`heard` is called with a question's id and what the client made of it; `send` sends it an update."""

    def __init__(
        self,
        connection: Connection,
        writer: Writer,
        *,
        modes: frozenset[str],
        send: Callable[[bytes], None],
        heard: Callable[[str, Any], None],
    ) -> None:
        self._connection = connection
        self._writer = writer
        self._modes = modes
        self._send = send
        self._heard = heard
        self._open: dict[str, Call] = {}

    def __contains__(self, question_id: object) -> bool:
        return question_id in self._open

    def ask(self, question: Question) -> None:
        if question.question_id in self._open:
            return
        elicitation = elicitation_of(question)
        if elicitation is not None:
            if mode_of(elicitation) in self._modes:  # ELIC-02: otherwise it waits for others
                self._put(question, CREATE_ELICITATION, self._writer.elicited(elicitation), answered)
            return
        request = question.permission
        if request is None:
            return
        asked = self._writer.asked(request, question=question.question_id, origin=present(question.origin))
        if asked is None:
            # It cannot be put to this client at all, which counts as not approved.
            self._heard(question.question_id, CANCELLED)
            return
        for raw in asked.updates:
            self._send(raw)
        self._put(question, REQUEST_PERMISSION, asked.params, asked.outcome)

    def _put(self, question: Question, method: str, params: Any, meaning: Callable[[Any], Any]) -> None:
        def settled(outcome: Any) -> None:
            self._open.pop(question.question_id, None)
            if isinstance(outcome, LinkLost) or _leaves(outcome):
                return  # it waits for others, or for this client's return
            # No approval, whatever went wrong (PERM-V2-07).
            self._heard(question.question_id, meaning(None if isinstance(outcome, Exception) else outcome))

        # Its name: copies at several clients, or at one that comes back, are known to be of one question.
        params = structs.replace(params, meta=with_ours(params.meta, questionId=question.question_id))
        with contextlib.suppress(LinkLost):
            self._open[question.question_id] = self._connection.begin(method, params, settled)

    def withdraw(self, *question_ids: str) -> None:
        """It is over, or this client leaves: an abandoned call tells the client (PROMPT-V2-41)."""
        for question_id in question_ids or tuple(self._open):
            call = self._open.pop(question_id, None)
            if call is not None:
                self._connection.abandon(call)


def _leaves(outcome: Any) -> bool:
    """RPC-34: a client that is shut down while it is asked says so; that decides nothing for the others."""
    return isinstance(outcome, CallFailed) and outcome.error.code == RequestCancelled.code
