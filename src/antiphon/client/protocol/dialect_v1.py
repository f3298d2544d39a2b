"""AgentDialectV1: an agent that speaks v1, seen as v2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Struct

from antiphon.bridge.content import recast
from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.bridge.losses import Report
from antiphon.bridge.proposed import Insertions
from antiphon.bridge.upgrade.questions import permission
from antiphon.bridge.upgrade.session import Upgrade
from antiphon.bridge.upgrade.turns import idle_of
from antiphon.client.protocol.dialect import (
    AgentEvent,
    CompletionReceived,
    OtherTurnEnded,
    PermissionQuestion,
    PromptEnded,
    PromptNamed,
)
from antiphon.client.protocol.dialect_v2 import prompt_names
from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.errors import ErrorObject, InvalidParams, LocalError
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.clients import Who
from antiphon.schema.updates import TextChunk
from antiphon.schema.v1 import optins
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.v2.proposed import PromptTaken
from antiphon.schema.version import Agreement, ours_in, with_ours


class CompletionPromise(Struct):
    """The promise of an agent to send `turn_complete`. All sessions of a connection share it, and all
    processes of an agent behind a hub."""

    broken: bool = False
    """Whether the agent left out a `turn_complete`: then no session waits for one any more."""


class _OpenPrompt(Struct):
    """A prompt that has not ended. With a `turn_complete` barrier it ends once both parts have come."""

    cancelled: bool = False
    answer: v1.PromptResponse | None = None
    """The response, if it came before the `turn_complete`: updates may still follow."""
    completion: optins.TurnComplete | None = None
    """The `turn_complete`, if it came before the response."""


class AgentDialectV1:
    """Implements `AgentDialect`."""

    def __init__(
        self,
        agreement: Agreement,
        capabilities: v1.AgentCapabilities,
        *,
        sender: Who | None = None,
        promise: CompletionPromise | None = None,
        report: Report | None = None,
    ) -> None:
        """`sender`: the sender of this client's prompts; v1 agents do not report one."""
        self._prompt_meta = None if sender is None else with_ours(None, sender=sender.to_meta())
        self._names_own_prompts = sender is not None and ours_in(capabilities.meta).get("hub") is True
        """Whether our prompts get ids with a special prefix. A hub numbers the messages of its v1 agents
        the same way as this client does, and the same number would be another message."""
        self._capabilities = capabilities
        opted = agreement.opt_ins
        marker = capabilities.session_capabilities.turn_complete  # TC-05: with it or by our own opt-in
        self._barrier = (opted.turn_complete or marker is not None) and not opted.prompt_lifecycle
        self._promise = promise or CompletionPromise()
        self.answers_at_end = not opted.prompt_lifecycle
        self.reports_every_end = self._barrier or opted.prompt_lifecycle
        self._prompts: dict[int, _OpenPrompt] = {}
        self._insertions = Insertions()
        """Pairs prompts that were answered with `{}` under the future flag with their messages."""
        self._report = report
        self.upgrade = Upgrade(opted, report=report)

    def prompt_params(self, params: v2.PromptRequest) -> Any:
        try:
            return requests_v1.prompt(params, capabilities=self._capabilities, report=self._report)
        except InvalidParams as error:
            raise LocalError(error.detail) from None  # nothing was sent: the fault is local

    def prompt_sent(self, call: int, content: list[v2.ContentBlock]) -> Sequence[AgentEvent]:
        self._prompts[call] = _OpenPrompt()
        if not self.answers_at_end:
            self._insertions.sent(call)
        name = f"own:{call}" if self._names_own_prompts else None
        lifted = self.upgrade.prompted(call, content, message_id=name, meta=self._prompt_meta)
        named = [
            PromptNamed(call, update.message_id) for update in lifted if isinstance(update, v2.UserMessage)
        ]
        return [*named, *lifted]

    def read_update(self, update: Any) -> Sequence[AgentEvent]:
        lifted = self.upgrade.update(update)
        if not self.answers_at_end:
            named = [name for each in lifted for name in prompt_names(self._insertions.update_received(each))]
            return [*named, *lifted]
        if isinstance(update, optins.TurnComplete):
            for call, prompt in self._prompts.items():
                if str(call) == str(update.prompt_request_id):  # TC-04
                    return [*lifted, *self._completed(call, prompt, update)]
            if self._prompts and update.prompt_request_id is UNSET:
                return [*lifted, OtherTurnEnded(TurnEnd.from_state(idle_of(update)))]
        return lifted

    def name_text_chunks(self, chunks: Sequence[TextChunk]) -> bool:
        return self.upgrade.name_text(chunks)

    def _completed(self, call: int, prompt: _OpenPrompt, update: optins.TurnComplete) -> Sequence[AgentEvent]:
        if prompt.answer is not None:
            return self._end(call, prompt.answer)
        prompt.completion = update
        return [CompletionReceived(call)]

    def prompt_answered(self, call: int, result: Any) -> Sequence[AgentEvent]:
        if isinstance(result, optins.PromptAccepted):
            self._prompts.pop(call, None)
            return prompt_names(self._insertions.answered(call, _acceptance_v2(result)))
        prompt = self._prompts.setdefault(call, _OpenPrompt())
        if self._barrier and not self._promise.broken and prompt.completion is None:
            prompt.answer = result  # TC-06: the barrier is the update, not the response
            return ()
        return self._end(call, result)

    def stop_waiting(self, call: int | None = None) -> Sequence[AgentEvent]:
        """An agent that left out the `turn_complete` of `call` is not waited for again."""
        waiting = [each for each in self._prompts.items() if call is None or each[0] == call]
        events: list[AgentEvent] = []
        for id, prompt in waiting:
            if prompt.answer is not None:
                self._promise.broken = self._promise.broken or call is not None
                events += self._end(id, prompt.answer)
        for id, prompt in waiting:
            if prompt.answer is None and prompt.completion is not None:
                events += self._end_unanswered(id, prompt.completion)
        return events

    def _end_unanswered(self, call: int, completion: optins.TurnComplete) -> Sequence[AgentEvent]:
        """End a prompt by its `turn_complete`: the agent sent no response after it."""
        idle = idle_of(completion)
        if idle.error is not None:
            error = ErrorObject(int(idle.error.code), idle.error.message, idle.error.data)
            return self.prompt_failed(call, error)
        reason = idle.stop_reason or StopReason.END_TURN
        return self._end(call, v1.PromptResponse(stop_reason=v1.StopReason(reason)))

    def _end(self, call: int, result: v1.PromptResponse) -> Sequence[AgentEvent]:
        self._prompts.pop(call, None)
        released = self.upgrade.release()
        lifted = self.upgrade.responded(call, result)
        if lifted:
            return [*released, *lifted]
        usage = None if result.usage is None else recast(result.usage, v2.Usage)
        end = TurnEnd(stop_reason=StopReason(result.stop_reason), usage=usage)
        return [*released, PromptEnded(call, end)]

    def prompt_failed(self, call: int, error: ErrorObject) -> Sequence[AgentEvent]:
        prompt = self._prompts.pop(call, None)
        self._insertions.refused(call)
        released = self.upgrade.release()
        lifted = self.upgrade.failed(call, error)
        if lifted or not self.answers_at_end:
            return [*released, *lifted]
        if prompt is not None and prompt.cancelled:
            return [*released, PromptEnded(call, TurnEnd(stop_reason=StopReason.CANCELLED))]
        return [*released, PromptEnded(call, TurnEnd.from_error(error))]

    def cancel_id(self, message_id: str | None) -> str | None:
        return None if self.answers_at_end else message_id

    def cancel_sent(self) -> None:
        for prompt in self._prompts.values():
            prompt.cancelled = True
        self.upgrade.cancelled()

    def link_lost(self) -> Sequence[AgentEvent]:
        self._prompts.clear()
        released = self.upgrade.release()
        return [*released, *self.upgrade.interrupted()]

    def restart(self) -> None:
        self._prompts.clear()
        self._insertions = Insertions()
        self.upgrade = Upgrade(self.upgrade.opt_ins, report=self._report)

    def permission_asked(self, params: v1.RequestPermissionRequest) -> PermissionQuestion:
        lifted = permission(params, self.upgrade)
        return PermissionQuestion(
            lifted.params,
            lambda outcome: lifted.answer(v2.RequestPermissionResponse(outcome=outcome)),
            lifted.updates,
        )

    def question_opened(self, question_id: str, tool_call_id: str | None) -> Sequence[AgentEvent]:
        return () if tool_call_id is None else self.upgrade.asked(question_id, tool_call_id)

    def question_closed(self, question_id: str) -> Sequence[AgentEvent]:
        return self.upgrade.answered(question_id)


def _acceptance_v2(result: optins.PromptAccepted) -> v2.PromptResponse | PromptTaken:
    if isinstance(result.message_id, str):
        return v2.PromptResponse(message_id=v2.MessageId(result.message_id), meta=result.meta)
    return PromptTaken(meta=result.meta)
