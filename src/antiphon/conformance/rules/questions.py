"""Rules about permission requests and elicitations."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.conformance.recording import RecordedFrame, Recording, Role
from antiphon.conformance.rules.exchanges import exchanges_of
from antiphon.conformance.rules.rule import Facts, Finding, Rules
from antiphon.conformance.rules.values import objects
from antiphon.conformance.shapes import glimpse

rules = Rules()


@rules.add("PERM-V2-01", versions=(2,))
def option_ids_differ(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The options of a v2 permission request have different ids."""
    for frame in recording.of(Role.AGENT):
        options = frame.get("params", "options")
        if frame.method == "session/request_permission" and isinstance(options, list):
            ids = [glimpse(option.get("optionId")) for option in objects(options)]
            text = f"expected different option ids, got {', '.join(ids)}"
            yield Finding("PERM-V2-01", len(set(ids)) == len(ids), text, (frame,))


@rules.add("PERM-V1-03", versions=(1,), parties=(Role.CLIENT,))
def a_cancel_cancels_questions(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """After `session/cancel` a v1 client answers every open permission request with `cancelled`."""
    for exchange in exchanges_of(recording, Role.AGENT).all:
        request, answer = exchange.request, exchange.response
        if request.method != "session/request_permission" or answer is None:
            continue
        cancel = next(
            (
                frame
                for frame in recording.frames[request.index : answer.index]
                if frame.method == "session/cancel" and frame.session_id == request.session_id
            ),
            None,
        )
        if cancel is not None:
            ok = answer.get("result", "outcome", "outcome") == "cancelled"
            text = "expected the outcome `cancelled` after `session/cancel`"
            yield Finding("PERM-V1-03", ok, text, (request, cancel, answer))


@rules.add("PERM-V2-09", versions=(2,), parties=(Role.CLIENT,))
def withdrawn_questions_are_cancelled(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A permission request that the agent cancels gets an outcome, not an error."""
    exchanges = exchanges_of(recording, Role.AGENT)
    for cancel in recording.of(Role.AGENT):
        if cancel.method != "$/cancel_request":
            continue
        for request, answer in exchanges.answered("session/request_permission"):
            same = glimpse(request.id) == glimpse(cancel.get("params", "requestId"))
            if not same or not request.index < cancel.index < answer.index:
                continue
            # An answer that the user gave before the client read the cancel is fine: only an error is not.
            text = "expected the outcome `cancelled` for a request that the agent cancelled, got an error"
            yield Finding("PERM-V2-09", answer.error_code is None, text, (request, cancel, answer))


@rules.add("ELIC-04")
def elicitations_have_one_scope(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """An elicitation belongs to a session or to a request of the client; in v2 never to both."""
    for frame in _elicitations(recording):
        params = frame.params if isinstance(frame.params, dict) else {}
        given = [key for key in ("sessionId", "requestId") if params.get(key) is not None]
        ok = len(given) == 1 if facts.version == 2 else bool(given)
        text = f"expected exactly one of `sessionId` and `requestId`, got {len(given)}"
        yield Finding("ELIC-04", ok, text, (frame,))


@rules.add("ELIC-06")
def open_elicitation_ids_differ(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The ids of URL elicitations that are open at once differ."""
    answered = {
        request.index: answer
        for request, answer in exchanges_of(recording, Role.AGENT).answered("elicitation/create")
    }
    open: dict[str, RecordedFrame] = {}
    for frame in recording.frames:
        if frame.method == "elicitation/complete":
            open.pop(glimpse(frame.get("params", "elicitationId")), None)
        elif frame.method == "elicitation/create" and frame.get("params", "mode") == "url":
            id = glimpse(frame.get("params", "elicitationId"))
            earlier = open.get(id)
            still = earlier is not None and (
                earlier.index not in answered or answered[earlier.index].index > frame.index
            )
            text = f"expected another `elicitationId` than that of an open one, got {id}"
            yield Finding("ELIC-06", not still, text, (*([earlier] if earlier else []), frame))
            open[id] = frame


def _elicitations(recording: Recording) -> Iterator[RecordedFrame]:
    for frame in recording.of(Role.AGENT):
        if frame.method == "elicitation/create" and frame.is_request:
            yield frame
