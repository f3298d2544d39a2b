"""Commands return what to append, and what they lead to keeps the invariants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine import events as e
from antiphon.engine.events import AnyBody, Updated
from antiphon.engine.prompts import Takes
from antiphon.engine.session import Cancelled, Session
from antiphon.schema.v2.messages import AgentMessageChunk
from antiphon.schema.v2.prompt import SessionStateUpdate, State, StopReason
from tests.requirements.marks import requirement

from .journals import BODIES, asked, chunk, commit, folded, queued, state

CREATED = e.SessionCreated(session_id="s", cwd="/w", additional_directories=("/x",), meta={"k": 1})


@given(st.lists(BODIES, max_size=25))
def test_commands_return_what_to_append_and_change_nothing(bodies: list[AnyBody]) -> None:
    session = folded(*bodies)
    session.run()
    session.block()
    session.unblock()
    session.report_background([])
    session.end(StopReason.END_TURN)
    session.cancel()
    session.interrupt()
    session.close()
    session.update(SessionStateUpdate(state=State.IDLE))
    for id in ("a", "b"):
        session.prompts.accept(id)
        session.prompts.withdraw(id)
        session.prompts.send(id)
        session.prompts.move(id)
        session.questions.cancel(id)
    session.prompts.next(session.state, Takes(steer=True))
    assert session == folded(*bodies)


@given(st.lists(BODIES, max_size=25))
def test_after_an_interruption_nothing_is_left_half_done(bodies: list[AnyBody]) -> None:
    """Invariants 4, 5 and 6 after a crash: no open turn, no open question, nothing sent and not answered."""
    session = folded(*bodies)
    waiting = session.queue
    commit(session, session.interrupt())
    assert (session.state.value, session.turn) == ("idle", None)
    assert session.questions.open == []
    assert session.prompts.sent == []
    assert session.queue == waiting
    assert not session.background
    assert session.interrupt() == ()


@requirement("SESS-39")
@given(st.lists(BODIES, max_size=25))
def test_after_a_close_nothing_runs_waits_for_an_answer_or_is_held(bodies: list[AnyBody]) -> None:
    session = folded(*bodies, e.SessionReopened())
    commit(session, session.close())
    assert (session.closed, session.state.value, session.turn) == (True, "idle", None)
    assert session.questions.open == []
    assert session.prompts.sent == []
    assert not any(entry.held for entry in session.queue)
    assert not session.background


@given(st.lists(BODIES, max_size=25))
def test_after_a_cancel_and_its_end_nothing_starts_by_itself(bodies: list[AnyBody]) -> None:
    session = folded(*bodies)
    background = [question for question in session.questions.open if question.turn_id is None]
    cancelled = session.cancel()
    commit(session, cancelled.events)
    commit(session, session.end(StopReason.CANCELLED))
    assert session.prompts.next(session.state) is None
    assert not any(entry.held for entry in session.queue)
    assert all(question in session.questions.open for question in background)


@pytest.mark.parametrize(("held", "working"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_lost_agent_pauses_only_what_nobody_waits_for_behind_a_turn_that_was_cut(
    held: bool, working: bool
) -> None:
    running = Updated.of(SessionStateUpdate(state=State.RUNNING))
    session = folded(*([running] if working else []), queued("p", held=held))
    commit(session, session.interrupt(attended=True))
    assert session.prompts.paused is (working and not held)
    restarted = folded(queued("p", held=held))
    commit(restarted, restarted.interrupt())
    assert restarted.prompts.paused


def test_a_prompt_that_was_accepted_is_told_its_end_also_when_its_turn_never_opened() -> None:
    session = folded(queued("p"), e.PromptAccepted(message_id="p"))
    commit(session, session.interrupt())
    assert session.turns.last is not None
    assert (session.turns.last.prompts, session.turns.last.interrupted) == (("p",), True)
    assert session.interrupt() == ()


@requirement("PROMPT-V2-43")
def test_cancelling_an_idle_session_does_nothing() -> None:
    assert folded().cancel() == Cancelled()


def test_a_cancel_that_names_a_turn_reaches_it_from_acceptance_on() -> None:
    session = folded(queued("p"), e.PromptAccepted(message_id="p", became="theirs"))
    assert not session.cancel(message_id="p").ignored
    commit(session, session.run())
    assert session.cancel(message_id="theirs").turn is session.turn
    assert session.cancel(message_id="another") == Cancelled(ignored=True)


@requirement("PROMPT-V2-40")
def test_cancel_keeps_background_work_running() -> None:
    work = [{"type": "terminal", "terminalId": "x"}]
    session = folded(state("running", background=work), asked("q", terminal_id="x"))
    commit(session, session.cancel().events)
    commit(session, session.end(StopReason.CANCELLED))
    assert session.background is not None
    assert len(session.background) == len(session.questions.open) == 1


def test_an_update_of_the_agents_is_appended_as_it_was_written() -> None:
    read = chunk("m", "x").update
    assert isinstance(read, AgentMessageChunk)
    (body,) = Session().update(read, raw=b'{"as":"written"}')
    assert isinstance(body, Updated)
    assert bytes(body.raw) == b'{"as":"written"}'
    assert body.update is read
