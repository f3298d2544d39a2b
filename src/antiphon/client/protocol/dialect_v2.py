"""AgentDialectV2: an agent that speaks v2, as published or as first proposed. Only the spelling differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antiphon.bridge.proposed import Insertions, normalize
from antiphon.client.protocol.dialect import STREAMED, AgentEvent, PermissionQuestion, PromptNamed
from antiphon.errors import ErrorObject
from antiphon.schema import v2
from antiphon.schema.updates import TextChunk


class AgentDialectV2:
    """Implements `AgentDialect`."""

    answers_at_end = False
    reports_every_end = True

    def __init__(self) -> None:
        self._insertions = Insertions()

    def prompt_params(self, params: v2.PromptRequest) -> Any:
        return params

    def prompt_sent(self, call: int, content: list[v2.ContentBlock]) -> Sequence[AgentEvent]:
        self._insertions.sent(call)
        return ()

    def read_update(self, update: Any) -> Sequence[AgentEvent]:
        if type(update) in STREAMED:
            return (update,)
        update = normalize(update)
        return [*prompt_names(self._insertions.update_received(update)), update]

    def name_text_chunks(self, chunks: Sequence[TextChunk]) -> bool:
        return True  # the agent has named them

    def prompt_answered(self, call: int, result: Any) -> Sequence[AgentEvent]:
        return prompt_names(self._insertions.answered(call, result))

    def prompt_failed(self, call: int, error: ErrorObject) -> Sequence[AgentEvent]:
        self._insertions.refused(call)
        return ()

    def cancel_id(self, message_id: str | None) -> str | None:
        return message_id

    def cancel_sent(self) -> None:
        pass

    def stop_waiting(self, call: int | None = None) -> Sequence[AgentEvent]:
        return ()

    def link_lost(self) -> Sequence[AgentEvent]:
        return ()

    def restart(self) -> None:
        self._insertions = Insertions()

    def permission_asked(self, params: v2.RequestPermissionRequest) -> PermissionQuestion:
        return PermissionQuestion(params, lambda outcome: v2.RequestPermissionResponse(outcome=outcome))

    def question_opened(self, question_id: str, tool_call_id: str | None) -> Sequence[AgentEvent]:
        return ()  # the agent reports its state

    def question_closed(self, question_id: str) -> Sequence[AgentEvent]:
        return ()


def prompt_names(pairs: Sequence[tuple[Any, v2.PromptResponse]]) -> list[PromptNamed]:
    """The message ids that `Insertions` has paired with calls."""
    return [PromptNamed(call, answer.message_id) for call, answer in pairs]
