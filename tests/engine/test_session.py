"""The session as a whole: one fold, commands that change nothing, and strangers that pass by."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine import events as e
from antiphon.engine.events import AnyBody, Event, Updated
from antiphon.engine.folding import _UPDATES
from antiphon.engine.journal import JournalGap
from antiphon.engine.session import Cancelled, Session
from antiphon.engine.snapshot import parts
from antiphon.schema.v2.messages import AgentMessageChunk
from antiphon.schema.v2.notices import Notice
from antiphon.schema.v2.prompt import SessionStateUpdate, State, StopReason
from antiphon.schema.v2.subagents import SessionMessage, SessionMessageChunk, SubagentUpdate
from antiphon.schema.v2.updates import SessionUpdate
from antiphon.schema.wire import Unknown

from .journals import AT, BODIES, asked, chunk, commit, events, folded, queued, state, update

CREATED = e.SessionCreated(session_id="s", cwd="/w", additional_directories=("/x",), meta={"k": 1})


def test_every_known_update_is_folded_or_passes_by_on_purpose() -> None:
    passing = {Notice, SubagentUpdate, SessionMessage, SessionMessageChunk}
    assert set(_UPDATES) | passing == {*get_args(SessionUpdate), Unknown}


def test_an_event_that_is_not_the_next_one_is_refused() -> None:
    session = folded(chunk("m", "x"))
    for seq in (1, 3):
        with pytest.raises(JournalGap):
            session.apply(Event(seq, AT, chunk("m", "y")))
    assert session == folded(chunk("m", "x"))


def test_strangers_pass_by_and_change_nothing_ext_07_note_05() -> None:
    before = parts(folded(chunk("m", "x")))
    for stranger in (
        update("_odd", x=1),
        update("notice", severity="info", title="Hi"),
        update("agent_message_chunk", messageId=3),
        update("subagent_update", sessionId="c"),
        Updated(raw=e.Raw(b"[1]")),
        Updated(raw=e.Raw(b"nonsense")),
    ):
        assert parts(folded(chunk("m", "x"), stranger)) == before


def test_a_session_is_created_closed_and_reopened() -> None:
    session = folded(CREATED, e.SessionCreated(session_id="other", cwd="/"), e.SessionClosed())
    assert (session.created, session.closed) == (CREATED, True)
    session.fold(events(e.SessionReopened(additional_directories=("/y",)), after=3))
    assert session.created == e.SessionCreated(
        session_id="s", cwd="/w", additional_directories=("/y",), meta={"k": 1}
    )
    assert not session.closed


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
    session.prompts.next(session.state, at_break_point=True)
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


def test_cancelling_an_idle_session_does_nothing_prompt_v2_43() -> None:
    assert folded().cancel() == Cancelled()


def test_a_cancel_that_names_a_turn_reaches_it_from_acceptance_on() -> None:
    session = folded(queued("p"), e.PromptAccepted(message_id="p", became="theirs"))
    assert not session.cancel(message_id="p").ignored
    commit(session, session.run())
    assert session.cancel(message_id="theirs").turn is session.turn
    assert session.cancel(message_id="another") == Cancelled(ignored=True)


def test_cancel_keeps_background_work_running_prompt_v2_40() -> None:
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


def test_items_of_all_kinds_are_listed_in_the_order_of_first_appearance() -> None:
    session = folded(
        update("usage_update", used=1, size=2),
        chunk("m", "x"),
        update("tool_call_update", toolCallId="t"),
        update("plan_update", plan={"type": "items", "planId": "p", "entries": []}),
        update("terminal_update", terminalId="x"),
        update("compaction_update", compactionId="k", status="completed"),
        chunk("m", "y"),
        update("session_info_update", title="T"),
    )
    assert [(item.key, item.position) for item in session.items] == [
        ("facts/usage", 1),
        ("message/agent/m", 2),
        ("tool/t", 3),
        ("plan/p", 4),
        ("terminal/x", 5),
        ("compaction/k", 6),
        ("facts/info", 8),
    ]


def test_sessions_are_equal_by_what_they_hold() -> None:
    assert folded(chunk("m", "x"), chunk("m", "y")) != folded(chunk("m", "xy"))  # by their last number
    assert folded(chunk("m", "x"), chunk("m", "y")) == folded(chunk("m", ""), chunk("m", "xy"))
    assert folded() != 3
