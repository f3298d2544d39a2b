"""What one session of an agent says, in v2's words, whatever the agent speaks; and our words in its own.

Each of the two is told what was sent and what came, in order, and gives v2 updates and news about prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from antiphon.bridge import requests_v1
from antiphon.bridge.spelling import Insertions, normalize
from antiphon.bridge.upgrade import Upgrade
from antiphon.bridge.upgrade_questions import permission
from antiphon.client.turn import TurnEnd
from antiphon.errors import CallFailed, ErrorObject
from antiphon.schema import v1, v2
from antiphon.schema.v1 import optins
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.v2.proposed import PromptTaken
from antiphon.schema.version import Agreement


class Named(Struct, frozen=True):
    """It is known which message the prompt of a call became."""

    call: int
    message_id: str


class Ended(Struct, frozen=True):
    """The prompt of a call has ended, whatever else goes on."""

    call: int
    end: TurnEnd


News = v2.SessionUpdate | Named | Ended


class Question(Struct, frozen=True):
    """A permission request in v2, and the answer to it in the agent's own words."""

    params: v2.RequestPermissionRequest | None
    answer: Any
    updates: Sequence[v2.SessionUpdate] = ()


class Spoken(Protocol):
    answers_at_the_end: bool
    """Whether a prompt is answered when its turn ends, and not when it is taken."""

    def prompt(self, params: v2.PromptRequest) -> Any: ...
    def sent(self, call: int, content: list[v2.ContentBlock]) -> list[News]: ...
    def read(self, update: Any) -> Sequence[News]: ...
    def answered(self, call: int, result: Any) -> Sequence[News]: ...
    def failed(self, call: int, error: CallFailed) -> Sequence[News]: ...
    def cancelled(self) -> None: ...
    def lost(self) -> Sequence[News]: ...
    def asked(self, params: Any, question_id: str) -> Question: ...
    def blocked(self, question_id: str, call: str | None) -> Sequence[News]: ...
    def unblocked(self, question_id: str) -> Sequence[News]: ...


class SpokenV2:
    """v2 as published or as first proposed: it is what we speak, but for the spelling."""

    answers_at_the_end = False

    def __init__(self) -> None:
        self._insertions = Insertions()

    def prompt(self, params: v2.PromptRequest) -> Any:
        return params

    def sent(self, call: int, content: list[v2.ContentBlock]) -> list[News]:
        self._insertions.sent(call)
        return []

    def read(self, update: Any) -> Sequence[News]:
        update = normalize(update)
        return [*(_named(pair) for pair in self._insertions.told(update)), update]

    def answered(self, call: int, result: Any) -> Sequence[News]:
        return [_named(pair) for pair in self._insertions.answered(call, result)]

    def failed(self, call: int, error: CallFailed) -> Sequence[News]:
        self._insertions.refused(call)
        return []

    def cancelled(self) -> None:
        pass

    def lost(self) -> Sequence[News]:
        return []

    def asked(self, params: v2.RequestPermissionRequest, question_id: str) -> Question:
        return Question(params, lambda outcome: v2.RequestPermissionResponse(outcome=outcome))

    def blocked(self, question_id: str, call: str | None) -> Sequence[News]:
        return []  # the agent tells its state

    def unblocked(self, question_id: str) -> Sequence[News]:
        return []


class SpokenV1:
    """v1, seen as v2."""

    def __init__(self, agreement: Agreement, capabilities: v1.AgentCapabilities) -> None:
        self._capabilities = capabilities
        self._barrier = agreement.opt_ins.turn_complete and not agreement.opt_ins.prompt_lifecycle
        self.answers_at_the_end = not agreement.opt_ins.prompt_lifecycle
        self._complete: set[str] = set()
        self._held: dict[int, v1.PromptResponse] = {}
        """Answers that came before the `turn_complete` of their prompt: what it closes may still come."""
        self.upgrade = Upgrade(agreement.opt_ins)

    def prompt(self, params: v2.PromptRequest) -> Any:
        return requests_v1.prompt(params, capabilities=self._capabilities)

    def sent(self, call: int, content: list[v2.ContentBlock]) -> list[News]:
        lifted = self.upgrade.prompted(call, content)
        named = [Named(call, update.message_id) for update in lifted if isinstance(update, v2.UserMessage)]
        return [*named, *lifted]

    def read(self, update: Any) -> Sequence[News]:
        lifted: Sequence[News] = self.upgrade.update(update)
        if self._barrier and isinstance(update, optins.TurnComplete):
            request = str(update.prompt_request_id)
            self._complete.add(request)
            for call in [call for call in self._held if str(call) == request]:
                lifted = [*lifted, *self._end(call, self._held.pop(call))]
        return lifted

    def answered(self, call: int, result: Any) -> Sequence[News]:
        if isinstance(result, optins.PromptAccepted):
            return [Named(call, result.message_id)]
        if self._barrier and str(call) not in self._complete:
            self._held[call] = result  # TC: the barrier is the update, not the response
            return []
        return self._end(call, result)

    def overdue(self, call: int) -> Sequence[News]:
        """No `turn_complete` came for an answered prompt, and none is waited for any longer."""
        held = self._held.pop(call, None)
        return () if held is None else self._end(call, held)

    @property
    def waits_for_completion(self) -> bool:
        return bool(self._held)

    def _end(self, call: int, result: v1.PromptResponse) -> Sequence[News]:
        self._complete.discard(str(call))
        lifted = self.upgrade.responded(call, result)
        if lifted:
            return lifted
        return [Ended(call, TurnEnd(stop_reason=StopReason(result.stop_reason)))]

    def failed(self, call: int, error: CallFailed) -> Sequence[News]:
        lifted = self.upgrade.failed(call, error.error)
        if lifted:
            return lifted
        return [Ended(call, TurnEnd(stop_reason=StopReason.ERROR, error=_error(error.error)))]

    def cancelled(self) -> None:
        self.upgrade.cancelled()

    def lost(self) -> Sequence[News]:
        return self.upgrade.interrupted()

    def asked(self, params: v1.RequestPermissionRequest, question_id: str) -> Question:
        lifted = permission(params, self.upgrade)
        return Question(
            lifted.params,
            lambda outcome: lifted.answer(v2.RequestPermissionResponse(outcome=outcome)),
            lifted.updates,
        )

    def blocked(self, question_id: str, call: str | None) -> Sequence[News]:
        return () if call is None else self.upgrade.asked(question_id, call)

    def unblocked(self, question_id: str) -> Sequence[News]:
        return self.upgrade.answered(question_id)


def taken(result: Any) -> bool:
    """Whether an answer says that a prompt was taken, and not that its turn ended."""
    return isinstance(result, v2.PromptResponse | PromptTaken | optins.PromptAccepted)


def _named(pair: tuple[Any, v2.PromptResponse]) -> Named:
    return Named(pair[0], pair[1].message_id)


def _error(error: ErrorObject) -> v2.Error:
    try:
        code = v2.ErrorCode(error.code)
    except ValueError:
        code = v2.ErrorCode.INTERNAL_ERROR
    return v2.Error(code=code, message=error.message, data=error.data)
