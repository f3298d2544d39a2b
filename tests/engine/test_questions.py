"""A question is answered exactly once, and does not outlive what it belongs to."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from antiphon.engine import events as e
from antiphon.engine import questions as questions_module
from antiphon.engine.events import AnyBody, Cursor, QuestionEnd
from antiphon.engine.questions import Ending, Question, QuestionState, Unanswerable
from antiphon.engine.session import Session
from antiphon.engine.snapshot import parts
from antiphon.engine.turn import TurnId
from antiphon.schema.v2.prompt import SessionStateUpdate, State, StopReason
from tests.requirements.marks import requirement

from .journals import BODIES, asked, commit, folded, permission, raw, restore, selected, state, update


def open_ids(session: Session) -> list[str]:
    return [question.question_id for question in session.questions.open]


@pytest.mark.parametrize(("first", "second"), list(product(QuestionEnd, QuestionEnd)))
def test_a_question_ends_once_in_every_way(first: QuestionEnd, second: QuestionEnd) -> None:
    session = folded(state("running"), asked("q"))
    commit(session, [e.QuestionClosed(question_id="q", end=first)])
    ended = session.questions.get("q")
    assert ended is not None
    assert ended.state is QuestionState(first)
    commit(session, [e.QuestionClosed(question_id="q", end=second)])
    assert session.questions.get("q") is ended
    questions = session.questions
    for late in (questions.answer("q", selected("allow_once")), questions.cancel("q"), questions.expire("q")):
        assert late == Ending(question=ended, refusal=Unanswerable.ALREADY_ENDED)


def test_a_question_waits_with_its_params_as_they_were_written() -> None:
    session = folded(state("running"), asked("q", permission("allow_once", title="Run it?")))
    assert session.questions.open == [
        Question(
            question_id="q",
            method="session/request_permission",
            params=permission("allow_once", title="Run it?"),
            opened=2,
            turn_id=TurnId(1),
        )
    ]


def test_the_first_answer_counts_and_no_other_does() -> None:
    session = folded(state("running"), asked("q"))
    first = session.questions.answer("q", selected("allow_once"), by="ann")
    assert commit(session, first.events) == [
        e.QuestionClosed(question_id="q", end=QuestionEnd.ANSWERED, result=selected("allow_once"), by="ann")
    ]
    ended = session.questions.get("q")
    late = Ending(question=ended, refusal=Unanswerable.ALREADY_ENDED)
    assert session.questions.answer("q", selected("allow_once"), by="bob") == late
    assert session.questions.cancel("q") == late
    assert session.questions.expire("q") == late
    assert session.questions.answer("never", selected("x")).refusal is Unanswerable.UNKNOWN_QUESTION


@requirement("PERM-V2-06", "PERM-V2-07", "PERM-V2-08")
@pytest.mark.parametrize(
    ("result", "option"),
    [
        (selected("allow_once"), "allow_once"),
        (selected("reject_once"), "reject_once"),
        (selected("_maybe"), "_maybe"),
        (selected("not offered"), None),  # PERM-V2-06
        (raw({"outcome": {"outcome": "_shrugged", "optionId": "allow_once"}}), None),  # PERM-V2-07
        (raw({"outcome": {"outcome": "cancelled"}}), None),  # PERM-V2-08
        (raw({"outcome": {"outcome": "selected"}}), None),
        (raw(["nonsense"]), None),
        (Raw(b"{"), None),
    ],
)
def test_only_an_offered_option_can_be_chosen(result: Raw, option: str | None) -> None:
    session = folded(asked("q", permission("allow_once", "reject_once", "_maybe")))
    chosen = session.questions.open[0].chosen(result)
    assert (None if chosen is None else chosen.option_id) == option


@requirement("PERM-V2-03")
def test_a_question_about_a_tool_call_applies_it_like_an_update() -> None:
    call = {"toolCallId": "t", "title": "Run", "kind": "execute"}
    asking = folded(asked("q", permission(subject={"type": "tool_call", "toolCall": call})))
    told = folded(update("tool_call_update", **call))
    assert [call.materialize() for call in asking.tool_calls] == [
        call.materialize() for call in told.tool_calls
    ]


@requirement("PERM-V2-02", "PERM-V2-04")
def test_a_title_and_a_command_alter_no_tool_call() -> None:
    subject = {"type": "command", "command": "ls", "cwd": "/", "toolCallId": "t"}
    assert folded(asked("q", permission(subject=subject))).tool_calls == []


@requirement("PERM-V2-10")
def test_cancel_takes_back_the_questions_of_the_turn_and_keeps_those_of_background_work() -> None:
    session = folded(
        asked("before", tool_call_id="t"),
        state("running"),
        asked("a"),
        asked("b", terminal_id="x"),
        asked("c"),
    )
    commit(session, session.cancel().events)
    assert open_ids(session) == ["before", "b"]


def test_questions_end_with_their_turn_before_the_idle_that_ends_it() -> None:
    session = folded(state("running"), asked("a"), asked("b", tool_call_id="t"))
    bodies = commit(session, session.update(SessionStateUpdate(state=State.IDLE)))
    assert bodies[0] == e.QuestionClosed(question_id="a", end=QuestionEnd.CANCELLED)
    assert open_ids(session) == ["b"]


@requirement("SESS-39")
def test_close_cancels_every_question_and_ends_background_work() -> None:
    session = folded(
        state("running", background=[{"type": "tool_call", "toolCallId": "t"}]),
        asked("a"),
        asked("b", tool_call_id="t"),
    )
    commit(session, session.close())
    assert open_ids(session) == []
    assert (session.closed, session.background) == (True, [])
    assert session.turns.last is not None
    assert session.turns.last.stop_reason is StopReason.CANCELLED
    assert session.close() == ()


def test_questions_expire_with_the_agent_that_asked_them() -> None:
    session = folded(state("running"), asked("a"), asked("b", tool_call_id="t"))
    commit(session, session.interrupt())
    assert [question.state for question in session.questions.all.values()] == [QuestionState.EXPIRED] * 2


@requirement("PROMPT-V2-23", "PROMPT-V2-24", "PROMPT-V2-25")
def test_requires_action_is_due_only_when_the_whole_turn_waits() -> None:
    session = folded(state("running"), asked("bg", terminal_id="x"))
    assert session.block() == ()
    commit(session, [asked("a"), asked("b")])
    assert session.block(others_running=True) == ()
    commit(session, session.block())
    assert session.turns.latest == SessionStateUpdate(
        state=State.REQUIRES_ACTION, meta={"antiphon": {"waitingFor": ["a", "b"]}}
    )
    commit(session, session.questions.answer("a", selected("allow_once")).events)
    assert session.state.value == "requires_action"  # PROMPT-V2-25: one of several
    commit(session, session.questions.answer("b", selected("allow_once")).events)
    commit(session, session.unblock())
    assert session.state.value == "running"


@requirement("PROMPT-V2-26")
def test_an_answer_to_work_that_has_ended_resumes_nothing() -> None:
    session = folded(state("running"), asked("a"))
    commit(session, session.end(StopReason.CANCELLED))
    assert session.questions.answer("a", selected("allow_once")).refusal is Unanswerable.ALREADY_ENDED
    assert session.unblock() == ()


def test_ended_questions_are_forgotten_in_their_order_and_open_ones_never(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions_module, "REMEMBERED", 1)
    session = folded(asked("open"))
    for id in "ab":
        commit(session, [asked(id)])
        commit(session, session.questions.cancel(id).events)
    assert set(session.questions.all) == {"open", "b"}
    assert restore(parts(session), Cursor(session.last_seq)) == session


@given(st.lists(BODIES, max_size=25), st.sampled_from(["end", "cancel", "interrupt", "close", "update"]))
def test_after_the_end_of_a_turn_no_question_of_it_is_open(bodies: list[AnyBody], how: str) -> None:
    session = folded(*bodies)
    turn = session.turn
    if turn is None:
        return
    if how == "cancel":
        commit(session, session.cancel().events)
    ends = {"interrupt": session.interrupt, "close": session.close}
    if how == "close" and session.closed:
        return
    if how == "update":
        commit(session, session.update(SessionStateUpdate(state=State.IDLE)))
    else:
        commit(session, ends.get(how, lambda: session.end(StopReason.CANCELLED))())
    assert session.turn is None
    assert session.questions.of_turn(turn.turn_id) == []
