"""Elicitations are questions: facts of a session that end once, and are kept like any other."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from antiphon.engine.events import (
    AnyBody,
    Cursor,
    Event,
    QuestionEnd,
    QuestionOpened,
    SessionCreated,
    decode_event,
    encode_event,
)
from antiphon.engine.json_values import encode
from antiphon.engine.questions import (
    CREATE_ELICITATION,
    Question,
    counted,
    elicitation_of,
    mode_of,
    read_response,
)
from antiphon.engine.session import Session
from antiphon.engine.snapshot import SessionRestorer, take_dirty
from antiphon.schema import v2
from tests.requirements.marks import requirement

FORM: dict[str, Any] = {
    "mode": "form",
    "sessionId": "s",
    "message": "Where?",
    "requestedSchema": {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}},
}
URL: dict[str, Any] = {
    "mode": "url",
    "sessionId": "s",
    "message": "Go",
    "url": "https://example.com",
    "elicitationId": "e",
}

ACCEPTED = {"action": "accept", "content": {"a": "xy"}}


def asked(params: dict[str, Any], **fields: Any) -> QuestionOpened:
    return QuestionOpened(question_id="q", method=CREATE_ELICITATION, params=Raw(encode(params)), **fields)


def session(*bodies: AnyBody) -> Session:
    made = Session()
    append(made, SessionCreated(session_id="s", cwd="/"), *bodies)
    return made


def append(to: Session, *bodies: AnyBody) -> None:
    for body in bodies:
        to.apply(decode_event(encode_event(Event(to.last_seq + 1, 1, body))))


def question(params: dict[str, Any]) -> Question:
    return session(asked(params)).questions.open[0]


def test_one_that_is_open_outlives_a_snapshot_whole() -> None:
    before = session(asked(FORM))
    parts = {name: part for name, part in take_dirty(before).items() if part is not None}
    restoring = SessionRestorer()
    restoring.add(parts)
    after = restoring.finish(Cursor(before.last_seq))
    assert after == before
    request = elicitation_of(after.questions.open[0])
    assert isinstance(request, v2.ElicitationFormMode)
    assert request == elicitation_of(before.questions.open[0])
    assert mode_of(request) == "form"


@requirement("ELIC-20")
def test_a_cancel_ends_those_of_the_turn_and_no_others() -> None:
    made = session()
    append(made, *made.run())
    append(made, asked(FORM))
    behind = QuestionOpened(
        question_id="b", method=CREATE_ELICITATION, params=Raw(encode(URL)), tool_call_id="t"
    )
    append(made, behind)
    append(made, *made.cancel().events)
    assert [one.question_id for one in made.questions.open] == ["b"]


def test_all_of_them_expire_with_the_agent() -> None:
    made = session(asked(FORM))
    append(made, *made.interrupt())
    ended = made.questions.get("q")
    assert ended is not None
    assert ended.state == QuestionEnd.EXPIRED
    assert elicitation_of(ended) is None
    assert made.questions.answer("q", b'{"action":"accept"}').events == ()


@requirement("ELIC-09")
@pytest.mark.parametrize(
    "params", [{"mode": "_odd", "message": "x", "sessionId": "s"}, {}, {**FORM, "requestedSchema": 3}]
)
def test_what_is_not_known_or_malformed_is_no_elicitation(params: dict[str, Any]) -> None:
    assert elicitation_of(question(params)) is None


@requirement("ELIC-07", "ELIC-08", "ELIC-10")
@pytest.mark.parametrize(
    ("params", "result", "counts"),
    [
        (FORM, {"action": "accept", "content": {"a": "xy", "b": 1}}, ACCEPTED),
        (FORM, {"action": "accept", "content": {}}, {"action": "accept", "content": {}}),
        (FORM, {"action": "accept", "content": {"a": "x"}}, None),
        (FORM, {"action": "decline", "content": {"a": "xy"}}, {"action": "decline"}),
        (FORM, {"action": "cancel"}, {"action": "cancel"}),
        (FORM, {"action": "_maybe", "content": {"a": "xy"}}, {"action": "cancel"}),
        (FORM, {"action": 3}, {"action": "cancel"}),
        (URL, {"action": "accept", "content": {"token": "x"}}, {"action": "accept"}),
        (URL, {"action": "decline"}, {"action": "decline"}),
    ],
)  # fmt: skip
def test_what_an_answer_counts_for(params: dict[str, Any], result: Any, counts: Any) -> None:
    request = elicitation_of(question(params))
    assert request is not None
    given = counted(request, read_response(encode(result)))
    assert given == (None if counts is None else read_response(encode(counts)))
