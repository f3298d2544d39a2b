"""AskedQuestions: the questions that one client was asked and has not answered.

A question is sent at its place among the updates, so that `requires_action` never precedes its question.
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
    """Asks one client, and reports what it answers."""

    def __init__(
        self,
        connection: Connection,
        writer: Writer,
        *,
        modes: frozenset[str],
        answers: Callable[[Question], bool],
        send: Callable[[bytes], None],
        on_answer: Callable[[str, Any], None],
    ) -> None:
        """Make it; nothing is asked before `open` is set.

        modes: the modes of elicitations that the client takes
        answers: says which questions this client is asked
        send: sends an update to the client
        on_answer: called with a question's id and the answer
        """
        self.open = False
        self._connection = connection
        self._writer = writer
        self._modes = modes
        self._answers = answers
        self._send = send
        self._on_answer = on_answer
        self._calls: dict[str, Call] = {}

    def __contains__(self, question_id: object) -> bool:
        return question_id in self._calls

    def ask(self, question: Question) -> None:
        """Ask the client, unless another one is to answer or it was asked already."""
        if not self.open or question.question_id in self._calls or not self._answers(question):
            return
        elicitation = elicitation_of(question)
        if elicitation is not None:
            if mode_of(elicitation) in self._modes:  # ELIC-02: otherwise another client answers
                self._call(question, CREATE_ELICITATION, self._writer.elicited(elicitation), answered)
            return
        request = question.permission
        if request is None:
            return
        asked = self._writer.asked(request, question=question.question_id, origin=present(question.origin))
        if asked is None:
            # This client cannot be asked at all, which counts as not approved.
            self._on_answer(question.question_id, CANCELLED)
            return
        for raw in asked.updates:
            self._send(raw)
        self._call(question, REQUEST_PERMISSION, asked.params, asked.outcome)

    def _call(self, question: Question, method: str, params: Any, meaning: Callable[[Any], Any]) -> None:
        def finished(outcome: Any) -> None:
            self._calls.pop(question.question_id, None)
            if isinstance(outcome, LinkLost) or _is_leaving(outcome):
                return  # the question waits for another client, or for this one to return
            # An error is no approval (PERM-V2-07).
            self._on_answer(
                question.question_id, meaning(None if isinstance(outcome, Exception) else outcome)
            )

        # The id shows that the copies at several clients, or at one that reconnects, are one question.
        params = structs.replace(params, meta=with_ours(params.meta, questionId=question.question_id))
        with contextlib.suppress(LinkLost):
            self._calls[question.question_id] = self._connection.begin(method, params, finished)

    def retract(self, question_id: str) -> None:
        """Cancel the request to the client, if it was asked (PROMPT-V2-41)."""
        call = self._calls.pop(question_id, None)
        if call is not None:
            self._connection.abandon(call)

    def retract_all(self) -> None:
        for question_id in tuple(self._calls):
            self.retract(question_id)


def _is_leaving(outcome: Any) -> bool:
    """Whether the client shuts down while it is asked (RPC-34). That is no answer for the other clients."""
    return isinstance(outcome, CallFailed) and outcome.error.code == RequestCancelled.code
