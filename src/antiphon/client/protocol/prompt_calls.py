"""PromptCalls: the `session/prompt` calls of one session that have not ended, and what their answers mean.

A `TrackedSession` receives the results.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct

from antiphon.bridge.prompts import read_message_id, read_repeat
from antiphon.client.protocol.abilities import Abilities
from antiphon.client.protocol.dialect import (
    PROMPT_EVENTS,
    AgentDialect,
    AgentEvent,
    CompletionReceived,
    PromptEnded,
    PromptNamed,
    check_prompt_answer,
    is_acceptance,
)
from antiphon.client.protocol.tracked_session import Prompt, TrackedSession
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.connection import Connection
from antiphon.errors import AntiphonError, CallFailed, ErrorObject, LinkLost, LocalError
from antiphon.jsonrpc import frames
from antiphon.jsonrpc.peer import CANCEL_REQUEST, Call
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.version import META_KEY

logger = logging.getLogger("antiphon.client")

OVERDUE = 5.0
"""Seconds of silence after which the second one of a response and a promised `turn_complete` is given up."""


P = TypeVar("P", bound=Prompt)


class _Sent(Struct, Generic[P]):
    """A prompt that is not answered yet."""

    prompt: P
    accepted: asyncio.Future[None]
    call: Call
    joins: bool
    withdrawn: bool = False


def check_delivery(delivery: str | None, abilities: Abilities) -> None:
    """Raise `LocalError` if the agent does not offer to deliver prompts like that."""
    if delivery is not None and delivery not in abilities.delivery:
        raise LocalError(f"this agent does not offer to {delivery} prompts")


class PromptCalls(Generic[P]):
    def __init__(
        self,
        session_id: str,
        connection: Connection,
        dialect: AgentDialect,
        tracker: TrackedSession[P],
        *,
        lasts: Callable[[], bool] = lambda: False,
    ) -> None:
        """`lasts`: whether a prompt with an operation id may be sent again, over another link."""
        self._session_id = v2.SessionId(session_id)
        self._connection = connection
        self._dialect = dialect
        self._tracker = tracker
        self._lasts = lasts
        self._sent: dict[int, _Sent[P]] = {}
        self._prompts: WeakValueDictionary[int, P] = WeakValueDictionary()
        """The prompts by their calls. The caller holds a prompt that has ended, if anybody does."""
        self._overdue: dict[int, asyncio.TimerHandle] = {}

    def send(
        self,
        prompt: P,
        content: list[v2.ContentBlock],
        *,
        delivery: str | None,
        operation_id: str | None,
        meta: dict[str, Any] | None = None,
    ) -> asyncio.Future[None]:
        """Send a prompt. The future is done once the agent has accepted it; at once if the agent does not
        report that."""
        asked = {"delivery": None if delivery is None else str(delivery), "operationId": operation_id}
        ours = {name: value for name, value in asked.items() if value is not None}
        meta = {**(meta or {}), META_KEY: ours} if ours else meta  # OBS-01
        joins = delivery == Delivery.STEER
        request = v2.PromptRequest(session_id=self._session_id, prompt=content, meta=meta)
        params = self._dialect.prompt_params(request)
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call = self._connection.begin(
            "session/prompt",
            params,
            lambda outcome: self._answered(call.id, outcome),
            lasting=operation_id is not None and self._lasts(),
        )
        self._sent[call.id] = _Sent(prompt, accepted, call, joins)
        self._prompts[call.id] = prompt
        self._tracker.prompt_sent(prompt, call.id)
        events = self._dialect.prompt_sent(call.id, content)
        if self._dialect.answers_at_end:
            # The agent does not show the prompt as a message, so it is shown here (24.3): its id comes first.
            self.handle(each for each in events if isinstance(each, PromptNamed))
            self._tracker.prompt_accepted(prompt, joins=joins)
            self.handle(each for each in events if not isinstance(each, PromptNamed))
            accepted.set_result(None)
        else:
            self.handle(events)
        return accepted

    def handle(self, events: Iterable[AgentEvent], *, cut: TurnEnd | None = None) -> None:
        """Pass what a dialect returned to the tracker."""
        for event in events:
            if not isinstance(event, PROMPT_EVENTS):
                self._tracker.apply(event, cut=cut)
            elif isinstance(event, PromptNamed):
                prompt = self._prompts.get(event.call)
                if prompt is not None and prompt.message_id is None:
                    prompt.message_id = event.message_id
            elif isinstance(event, CompletionReceived):
                self._wait_for_other_part(event.call)
            elif isinstance(event, PromptEnded):
                prompt = self._prompts.pop(event.call, None)
                if prompt is not None:
                    self._tracker.prompt_ended(prompt, event.end)
            else:
                turn = self._tracker.turns.turn
                if turn is not None and all(turn is not each for each in self._prompts.values()):
                    self._tracker.prompt_ended(turn, event.end)

    # --- the answer --------------------------------------------------------------------------------

    def _answered(self, call: int, outcome: Any) -> None:
        """Runs in the lane: everything that was sent before the answer has been applied."""
        sent = self._sent.pop(call)
        timer = self._overdue.pop(call, None)
        if timer is not None:
            timer.cancel()
        self._tracker.note_activity()
        outcome = check_prompt_answer(outcome, at_end=self._dialect.answers_at_end)
        try:
            if isinstance(outcome, AntiphonError):
                self._refused(sent, outcome)
            elif is_acceptance(outcome):
                self._accepted(sent, outcome)
            else:
                if read_repeat(outcome) is not None:
                    self._tracker.prompt_repeated(sent.prompt, read_message_id(outcome))
                self.handle(self._dialect.prompt_answered(call, outcome))
                if not sent.prompt.ended:
                    self._wait_for_other_part(call)
        finally:
            self._tracker.turns.prompt_answered()

    def _accepted(self, sent: _Sent[P], outcome: Any) -> None:
        self.handle(self._dialect.prompt_answered(sent.call.id, outcome))
        self._tracker.prompt_accepted(sent.prompt, joins=sent.joins, repeat=read_repeat(outcome))
        if not sent.accepted.done():
            sent.accepted.set_result(None)
        if sent.withdrawn:
            self._tracker.prompt_too_late(sent.prompt)

    def _refused(self, sent: _Sent[P], error: AntiphonError) -> None:
        if not sent.accepted.done():
            sent.accepted.set_exception(error)
            sent.accepted.exception()  # mark it as retrieved: the caller may be gone
        at_end = self._dialect.answers_at_end
        if isinstance(error, LinkLost):
            if not at_end:  # the others end when the session is left
                self._tracker.prompt_refused(sent.prompt, TurnEnd.interrupted(error))
            return
        wire = error.error if isinstance(error, CallFailed) else ErrorObject(error.code, str(error))
        self.handle(self._dialect.prompt_failed(sent.call.id, wire))
        if not at_end:
            self._tracker.prompt_refused(sent.prompt, TurnEnd.from_error(wire))

    def _wait_for_other_part(self, call: int) -> None:
        """Only one of the response and the promised `turn_complete` has come: wait a while for the other."""
        if call in self._overdue:
            return
        left = self._tracker.last_activity + OVERDUE - time.monotonic()
        loop = asyncio.get_running_loop()
        self._overdue[call] = loop.call_later(max(left, 0.0), self._other_part_overdue, call)

    def _other_part_overdue(self, call: int) -> None:
        del self._overdue[call]
        prompt = self._prompts.get(call)
        if prompt is None or prompt.ended:
            return
        if time.monotonic() < self._tracker.last_activity + OVERDUE:
            self._wait_for_other_part(call)  # the agent is still sending
            return
        answered = call not in self._sent
        events = self._dialect.stop_waiting(call)
        if events and answered:
            logger.warning("turn_complete missing: the agent promised it; it is not waited for again")
        elif events:
            logger.warning("prompt answer missing: the agent sent turn_complete; the turn ends")
        self.handle(events)

    # --- giving up ---------------------------------------------------------------------------------

    def withdraw(self, prompt: P) -> bool:
        """Withdraw a prompt and stop waiting for it. Returns False if the agent has accepted it already. If
        the agent accepts it all the same, the tracker is called with `prompt_too_late`."""
        sent = self._unanswered(prompt)
        if sent is None:
            return False
        sent.withdrawn = True
        self._send_cancel_request(sent)
        if not sent.accepted.done():
            sent.accepted.set_result(None)
        return True

    def request_withdrawal(self, prompt: P) -> bool:
        """Ask the agent to give back a prompt; the caller still waits for its answer. Returns False if the
        agent has accepted it already."""
        sent = self._unanswered(prompt)
        if sent is not None:
            self._send_cancel_request(sent)
        return sent is not None

    def _unanswered(self, prompt: P) -> _Sent[P] | None:
        if self._dialect.answers_at_end:
            return None
        return next((sent for sent in self._sent.values() if sent.prompt is prompt), None)

    def _send_cancel_request(self, sent: _Sent[P]) -> None:
        # PROMPT-V2-33. Its answer is still read: if it was accepted all the same, its turn is cancelled.
        params = b'{"requestId":%d}' % sent.call.id
        self._connection.send(frames.encode_notification(CANCEL_REQUEST, params))

    def give_up(self, prompt: P, end: TurnEnd) -> None:
        """Stop counting a prompt as open work: with a v1 agent only open prompts say that it works."""
        if not self._dialect.answers_at_end:
            return
        for call in [call for call, each in self._prompts.items() if each is prompt]:
            events = self._dialect.prompt_failed(call, ErrorObject(AntiphonError.code, str(end.cut)))
            self.handle([each for each in events if not isinstance(each, PromptEnded)], cut=end)

    # --- links -------------------------------------------------------------------------------------

    def link_restored(self) -> None:
        """Prompts without an answer were sent again, over another link."""
        self._tracker.note_activity()
        for sent in self._sent.values():
            if sent.withdrawn:
                self._send_cancel_request(sent)

    def link_lost(self, cut: TurnEnd) -> None:
        """The state of the agent is not known any more: open turns end here."""
        for timer in self._overdue.values():
            timer.cancel()
        self._overdue.clear()
        self.handle(self._dialect.stop_waiting())  # they were answered: they are not interrupted
        self.handle(self._dialect.link_lost(), cut=cut)

    def close(self, reason: LinkLost, cut: TurnEnd) -> None:
        """The session is left: callers that wait for an acceptance get `reason`."""
        self.link_lost(cut)
        for sent in self._sent.values():
            if not sent.accepted.done():
                sent.accepted.set_exception(reason)
                sent.accepted.exception()
