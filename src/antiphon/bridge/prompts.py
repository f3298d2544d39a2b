"""How a prompt is answered and how a turn's end is reported, per dialect (24.3, PROMPT, TC).

v2 answers a prompt when it is inserted and reports the end by the state; v1 answers at the end. The functions
return a list to be sent in order: updates, and answers to requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, structs

from antiphon.bridge import losses
from antiphon.bridge.content import recast
from antiphon.bridge.losses import Ledger, mark
from antiphon.engine import turn
from antiphon.engine.json_values import UPDATES, encode
from antiphon.errors import AntiphonError, ErrorObject, RequestCancelled, one_line
from antiphon.schema import v1, v2
from antiphon.schema.antiphon.prompts import PromptResponseMeta
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.repair import Malformed
from antiphon.schema.v1.optins import PromptAccepted, TurnComplete
from antiphon.schema.v2.proposed import PromptTaken
from antiphon.schema.version import OptIns

RequestId: TypeAlias = int | str | None
Taken: TypeAlias = v2.PromptResponse | PromptTaken | PromptAccepted
"""The answers that are given when a prompt is inserted."""

INTERRUPTED = v2.SessionStateUpdate(
    state=v2.State.IDLE, stop_reason=v2.StopReason.ERROR, error=turn.INTERRUPTED
)
"""How a turn ends that was cut short: towards v2 this, towards v1 the error in it."""


class Answer(Struct, frozen=True):
    """The answer to the prompt request with this id: a result, or an error."""

    request: RequestId
    given: v1.PromptResponse | Taken | ErrorObject


Step: TypeAlias = TurnComplete | Answer
"""One thing to send when a turn ends."""


def end_v1(
    idle: v2.StateUpdate, requests: Sequence[RequestId], *, opt_ins: OptIns, ledger: Ledger
) -> list[Step]:
    """Return what a v1 client with these open prompts gets when its turn ends, oldest prompt first.

    A client without any still gets the end of the turn, if it asked for that.
    """
    if opt_ins.prompt_lifecycle:
        return []  # answered at insertion; the state reports the end
    given = _end(idle, ledger)
    if not opt_ins.turn_complete:
        return [Answer(request, given) for request in requests]
    complete = _complete(given)
    if not requests:
        return [complete]
    steps: list[Step] = []
    for request in requests:  # TC-02, TC-03, TC-08
        steps += structs.replace(complete, prompt_request_id=request_name(request)), Answer(request, given)
    return steps


def refuse_v1(request: RequestId, error: ErrorObject, *, cancelled: bool, opt_ins: OptIns) -> list[Step]:
    """Return what a v1 client gets for a prompt that was never inserted; `cancelled` if its own cancel did
    that."""
    if not cancelled or error.code != RequestCancelled.code or opt_ins.prompt_lifecycle:
        return [Answer(request, error)]
    answer = Answer(request, v1.PromptResponse(stop_reason=v1.StopReason.CANCELLED))  # PROMPT-V1-14, -15
    if opt_ins.turn_complete:
        complete = TurnComplete(
            stop_reason=v1.IdleStopReason.CANCELLED, prompt_request_id=request_name(request)
        )
        return [complete, answer]
    return [answer]


def _end(idle: v2.StateUpdate, ledger: Ledger) -> v1.PromptResponse | ErrorObject:
    reason = idle.stop_reason
    if reason == v2.StopReason.ERROR:
        error = idle.error
        if error is None:
            return ErrorObject(AntiphonError.code, AntiphonError.summary, {"reason": "error"})
        return ErrorObject(int(error.code), one_line(error.message), error.data)
    usage = None if idle.usage is None else recast(idle.usage, v1.Usage)
    if reason is not None and reason.known:
        return v1.PromptResponse(stop_reason=v1.StopReason(reason), usage=usage, meta=idle.meta)
    ledger.lose(losses.STOP_REASON, idle)
    return v1.PromptResponse(
        stop_reason=v1.StopReason.END_TURN, usage=usage, meta=mark(idle.meta, {"stopReason": reason})
    )


def _complete(given: v1.PromptResponse | ErrorObject) -> TurnComplete:
    """Return the `turn_complete` of a turn with these answers (TC-09)."""
    if isinstance(given, ErrorObject):
        return TurnComplete(
            error=v1.Error(code=v1.ErrorCode(given.code), message=given.message, data=given.data)
        )
    return TurnComplete(stop_reason=v1.IdleStopReason(given.stop_reason))


def request_name(request: RequestId) -> str:
    """Return a request id as a string (TC-04, SD-30)."""
    return "null" if request is None else str(request)


REPEATED = {"repeated": True}
"""In the answer to a repeated prompt while its turn is open. v2 reports the end of a turn once, by the state:
a client that repeats a prompt would wait for it forever."""


class Repeat(Struct, frozen=True):
    """The prompt was taken before. `ended`: how its turn ended, if it has."""

    ended: v2.SessionStateUpdate | None = None


def repeated_over(idle: v2.StateUpdate) -> dict[str, Any]:
    """Return what the answer to a repeated prompt has once its turn has ended."""
    error = {} if idle.error is None else {"error": idle.error}
    return {**REPEATED, "stopReason": idle.stop_reason, **error}


def read_repeat(answer: Any) -> Repeat | None:
    """Read whether the answer is to a repeated prompt; `None` if the prompt was taken just now."""
    ours = read_meta(PromptResponseMeta, answer.meta)
    if not ours.repeated:
        return None
    if ours.stop_reason is UNSET:
        return Repeat()
    said = {"stopReason": ours.stop_reason, **({} if ours.error is UNSET else {"error": ours.error})}
    try:
        idle = UPDATES.read(encode({"sessionUpdate": "state_update", "state": "idle", **said}))
    except Malformed:
        idle = None
    unsaid = v2.SessionStateUpdate(state=v2.State.IDLE)
    return Repeat(idle if isinstance(idle, v2.SessionStateUpdate) else unsaid)


def read_message_id(answer: Any) -> str | None:
    """Return the message that a prompt became, if the answer names it in its `_meta` (SD-05)."""
    return read_meta(PromptResponseMeta, answer.meta).message_id
