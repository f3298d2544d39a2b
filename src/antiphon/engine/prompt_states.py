"""The states of a prompt, the actions that each state allows, and when a prompt may be taken: two total
tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from antiphon.engine.turn import TurnState
from antiphon.errors import ErrorObject, InvalidParams, ResourceNotFound
from antiphon.schema.antiphon.prompts import Delivery

PRECONDITION_FAILED = -32010


class PromptState(StrEnum):
    QUEUED = "queued"
    SENT = "sent"
    ACCEPTED = "accepted"
    WITHDRAWN = "withdrawn"
    REJECTED = "rejected"


class Action(StrEnum):
    """An action on a submitted prompt."""

    EDIT = "edit"
    MOVE = "move"
    WITHDRAW = "withdraw"
    RETURN = "return"
    """The upstream agent gave it back untaken."""
    SEND = "send"
    ACCEPT = "accept"
    REJECT = "reject"


class Refusal(StrEnum):
    ALREADY_DELIVERED = "already_delivered"
    UNKNOWN_MESSAGE_ID = "unknown_message_id"
    NO_RUNNING_TURN = "no_running_turn"
    EMPTY = "empty"
    WITH_AGENT = "with_agent"
    """It was sent: only the upstream agent can return it, so the caller has to ask the agent
    (PROMPT-V2-33)."""

    def to_wire(self) -> ErrorObject:
        """As the public draft has it."""
        match self:
            case Refusal.UNKNOWN_MESSAGE_ID:
                return ErrorObject(
                    ResourceNotFound.code, ResourceNotFound.summary, {"reason": "unknown_message_id"}
                )
            case Refusal.EMPTY:
                return ErrorObject(InvalidParams.code, "Invalid params: a prompt needs at least one block")
        reason = Refusal.ALREADY_DELIVERED if self is Refusal.WITH_AGENT else self
        return ErrorObject(PRECONDITION_FAILED, "Inject precondition failed", {"reason": str(reason)})


class Same(StrEnum):
    """It is so already: a success, and nothing happens."""

    SAME = "same"


Verdict: TypeAlias = PromptState | Refusal | Same
_S, _A = PromptState, Action

ACTIONS: Mapping[tuple[PromptState, Action], Verdict] = {
    (_S.QUEUED, _A.EDIT): _S.QUEUED,
    (_S.QUEUED, _A.MOVE): _S.QUEUED,
    (_S.QUEUED, _A.WITHDRAW): _S.WITHDRAWN,
    (_S.QUEUED, _A.RETURN): _S.WITHDRAWN,
    (_S.QUEUED, _A.SEND): _S.SENT,
    (_S.QUEUED, _A.ACCEPT): _S.ACCEPTED,
    (_S.QUEUED, _A.REJECT): _S.REJECTED,
    (_S.SENT, _A.EDIT): Refusal.ALREADY_DELIVERED,
    (_S.SENT, _A.MOVE): Refusal.ALREADY_DELIVERED,
    (_S.SENT, _A.WITHDRAW): Refusal.WITH_AGENT,
    (_S.SENT, _A.RETURN): _S.WITHDRAWN,
    (_S.SENT, _A.SEND): Same.SAME,  # at most once: never repeated
    (_S.SENT, _A.ACCEPT): _S.ACCEPTED,
    (_S.SENT, _A.REJECT): _S.REJECTED,
    (_S.ACCEPTED, _A.EDIT): Refusal.ALREADY_DELIVERED,
    (_S.ACCEPTED, _A.MOVE): Refusal.ALREADY_DELIVERED,
    (_S.ACCEPTED, _A.WITHDRAW): Refusal.ALREADY_DELIVERED,
    (_S.ACCEPTED, _A.RETURN): Refusal.ALREADY_DELIVERED,
    (_S.ACCEPTED, _A.SEND): Refusal.ALREADY_DELIVERED,
    (_S.ACCEPTED, _A.ACCEPT): Same.SAME,
    (_S.ACCEPTED, _A.REJECT): Refusal.ALREADY_DELIVERED,  # PROMPT-V2-17: a later failure shows on the idle
    (_S.WITHDRAWN, _A.EDIT): Refusal.UNKNOWN_MESSAGE_ID,
    (_S.WITHDRAWN, _A.MOVE): Refusal.UNKNOWN_MESSAGE_ID,
    (_S.WITHDRAWN, _A.WITHDRAW): Same.SAME,
    (_S.WITHDRAWN, _A.RETURN): Same.SAME,
    (_S.WITHDRAWN, _A.SEND): Refusal.UNKNOWN_MESSAGE_ID,
    (_S.WITHDRAWN, _A.ACCEPT): Refusal.UNKNOWN_MESSAGE_ID,
    (_S.WITHDRAWN, _A.REJECT): Same.SAME,
    (_S.REJECTED, _A.EDIT): Refusal.UNKNOWN_MESSAGE_ID,
    (_S.REJECTED, _A.MOVE): Refusal.UNKNOWN_MESSAGE_ID,
    (_S.REJECTED, _A.WITHDRAW): Same.SAME,
    (_S.REJECTED, _A.RETURN): Same.SAME,
    (_S.REJECTED, _A.SEND): Refusal.UNKNOWN_MESSAGE_ID,
    (_S.REJECTED, _A.ACCEPT): Refusal.UNKNOWN_MESSAGE_ID,
    (_S.REJECTED, _A.REJECT): Same.SAME,
}


class When(StrEnum):
    """When a prompt may be taken."""

    NOW = "now"
    AT_BREAK_POINT = "at_break_point"
    AFTER_CANCEL = "after_cancel"
    BY_AGENT = "by_agent"
    """Now, if the upstream agent takes prompts while it works; else later."""
    LATER = "later"


_D, _T = Delivery, TurnState

TAKING: Mapping[tuple[TurnState, Delivery], When] = {
    (_T.IDLE, _D.QUEUE): When.NOW,
    (_T.IDLE, _D.STEER): When.NOW,
    (_T.IDLE, _D.INTERRUPT): When.NOW,
    (_T.IDLE, _D.AGENT): When.NOW,
    (_T.RUNNING, _D.QUEUE): When.LATER,
    (_T.RUNNING, _D.STEER): When.AT_BREAK_POINT,
    (_T.RUNNING, _D.INTERRUPT): When.AFTER_CANCEL,
    (_T.RUNNING, _D.AGENT): When.BY_AGENT,
    (_T.REQUIRES_ACTION, _D.QUEUE): When.LATER,
    (_T.REQUIRES_ACTION, _D.STEER): When.LATER,  # it does not answer the question that is waited for
    (_T.REQUIRES_ACTION, _D.INTERRUPT): When.AFTER_CANCEL,
    (_T.REQUIRES_ACTION, _D.AGENT): When.BY_AGENT,
    (_T.UNSURE, _D.QUEUE): When.LATER,
    (_T.UNSURE, _D.STEER): When.LATER,
    (_T.UNSURE, _D.INTERRUPT): When.AFTER_CANCEL,
    (_T.UNSURE, _D.AGENT): When.BY_AGENT,
    (_T.OBSCURED, _D.QUEUE): When.LATER,
    (_T.OBSCURED, _D.STEER): When.LATER,
    (_T.OBSCURED, _D.INTERRUPT): When.AFTER_CANCEL,
    (_T.OBSCURED, _D.AGENT): When.BY_AGENT,
}
