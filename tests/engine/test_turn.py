"""The turn ends exactly once, whatever is reported how often."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.events import AnyBody, Updated
from antiphon.engine.session import Session
from antiphon.engine.turn import (
    COMMANDS,
    INTERRUPTED,
    REPORTS,
    Command,
    Effect,
    Opener,
    Report,
    Turn,
    TurnId,
    Turns,
    TurnState,
)
from antiphon.schema.v2.errors import Error, ErrorCode
from antiphon.schema.v2.identifiers import TerminalId
from antiphon.schema.v2.prompt import BackgroundTerminal, SessionStateUpdate, State, StopReason
from antiphon.schema.v2.usage import Usage
from antiphon.schema.wire import Unknown
from tests.requirements.marks import requirement

from .journals import AT, asked, chunk, commit, events, folded, queued, state, states, update

BACKGROUND = [BackgroundTerminal(terminal_id=TerminalId("x"))]


def last_update(session: Session, bodies: tuple[AnyBody, ...]) -> SessionStateUpdate:
    body = commit(session, bodies)[-1]
    assert isinstance(body, Updated)
    assert isinstance(body.update, SessionStateUpdate)
    return body.update


def test_every_report_in_every_state_is_decided() -> None:
    assert set(REPORTS) == set(product(TurnState, Report))


def test_every_command_in_every_state_is_decided() -> None:
    assert set(COMMANDS) == set(product(TurnState, Command))


@pytest.mark.parametrize(("before", "report"), REPORTS)
def test_a_turn_is_open_exactly_in_the_states_that_say_so(before: TurnState, report: Report) -> None:
    """The effect of every entry agrees with whether a turn is open before and after it."""
    in_turn = {TurnState.RUNNING, TurnState.REQUIRES_ACTION, TurnState.OBSCURED}
    after, effect = REPORTS[before, report]
    assert (effect is Effect.OPENED) == (before not in in_turn and after in in_turn)
    assert (effect is Effect.ENDED) == (before in in_turn and after not in in_turn)


@pytest.mark.parametrize(("before", "command"), COMMANDS)
def test_what_a_command_writes_is_no_surprise_to_who_reads_it(before: TurnState, command: Command) -> None:
    written = COMMANDS[before, command]
    if written is not None:
        after, _ = REPORTS[before, Report(written)]
        assert after.value == written.value


@requirement("PROMPT-V2-19")
@given(st.lists(states(), max_size=20))
def test_turns_end_as_often_as_they_open(bodies: list[AnyBody]) -> None:
    session = Session()
    opened = ended = 0
    for event in events(*bodies):
        assert isinstance(event.body, Updated)
        before = session.turns.last
        effect = session.turns.effect_of(event.body.update)  # type: ignore[arg-type]
        session.apply(event)
        opened += effect is Effect.OPENED
        ended += effect is Effect.ENDED
        assert (session.turns.last != before) == (effect is Effect.ENDED)
        assert (session.turn is not None) == (opened > ended)
        assert 0 <= opened - ended <= 1


@requirement("PROMPT-V2-20")
def test_a_repeated_idle_is_not_a_second_end() -> None:
    session = folded(state("running"), state("idle", stopReason="end_turn"))
    ended = session.turns.last
    session.fold(events(state("idle", stopReason="cancelled"), after=2))
    assert session.turns.last is ended
    assert ended == Turn(
        turn_id=TurnId(1), opened_at=AT, opened_by=Opener.AGENT, ended_at=AT, stop_reason=StopReason.END_TURN
    )


def test_a_prompt_opens_its_turn_and_a_steered_one_joins_it() -> None:
    session = folded(queued("p"), queued("q"))
    commit(session, session.prompts.accept("p").events)
    commit(session, session.run())
    commit(session, session.prompts.accept("q").events)
    commit(session, session.end(StopReason.END_TURN))
    assert session.turns.last == Turn(
        turn_id=TurnId(5),
        opened_at=AT,
        opened_by=Opener.PROMPT,
        prompts=("p", "q"),
        ended_at=AT,
        stop_reason=StopReason.END_TURN,
    )


@requirement("PROMPT-V2-27")
def test_an_agent_opens_a_turn_without_a_prompt() -> None:
    session = folded()
    commit(session, session.run())
    assert session.turn == Turn(turn_id=TurnId(1), opened_at=AT, opened_by=Opener.AGENT)


@requirement("PROMPT-V2-10")
def test_work_may_start_blocked() -> None:
    session = folded(state("requires_action"))
    assert session.turn is not None
    assert session.state is TurnState.REQUIRES_ACTION


@requirement("PROMPT-V2-28", "TOOL-V2-09")
def test_other_updates_never_change_the_state() -> None:
    session = folded(chunk("m", "x"), update("tool_call_update", toolCallId="t", status="in_progress"))
    assert (session.state, session.turn) == (TurnState.IDLE, None)


@requirement("PROMPT-V2-16", "PROMPT-V2-51")
def test_ending_twice_ends_once_and_says_why_with_error_and_usage() -> None:
    session = folded(state("running"))
    usage = Usage(total_tokens=3, input_tokens=2, output_tokens=1)
    error = Error(code=ErrorCode.INTERNAL_ERROR, message="no")
    assert last_update(
        session, session.end(StopReason.ERROR, error=error, usage=usage)
    ) == SessionStateUpdate(state=State.IDLE, stop_reason=StopReason.ERROR, error=error, usage=usage)
    assert session.end(StopReason.END_TURN) == ()


def test_a_turn_that_was_cut_short_is_interrupted_and_the_queue_is_intact() -> None:
    session = folded(queued("p"), queued("q"), state("running"), asked("a"), asked("b", terminal_id="x"))
    assert last_update(session, session.interrupt()) == SessionStateUpdate(
        state=State.IDLE, stop_reason=StopReason.ERROR, error=INTERRUPTED
    )
    assert session.turns.last is not None
    assert session.turns.last.interrupted
    assert session.questions.open == []
    assert [entry.message_id for entry in session.queue] == ["p", "q"]
    assert session.interrupt() == ()


@requirement("PROMPT-V2-45")
def test_background_is_on_every_state_update_once_it_was_reported() -> None:
    session = folded()
    assert last_update(session, session.run()).background is None
    assert last_update(session, session.report_background(BACKGROUND)).background == BACKGROUND
    assert last_update(session, session.end(StopReason.END_TURN)).background == BACKGROUND
    repeated = last_update(session, session.report_background([]))
    assert repeated == SessionStateUpdate(state=State.IDLE, stop_reason=StopReason.END_TURN, background=[])
    assert last_update(session, session.run()).background == []


@requirement("PROMPT-V2-47")
def test_a_snapshot_without_background_is_not_reported_and_never_none_running() -> None:
    session = folded(state("idle", background=[]), state("idle"))
    assert session.background is None
    assert folded(state("idle", background=[{"type": "_timer"}])).background == [Unknown(type="_timer")]


def test_background_work_dies_with_its_agent() -> None:
    session = folded(state("idle", background=[{"type": "terminal", "terminalId": "x"}]))
    assert last_update(session, session.interrupt()).background == []


@requirement("PROMPT-V2-48", "PROMPT-V2-50")
def test_an_unknown_state_is_busy_and_ends_nothing() -> None:
    session = folded(state("running"), state("_dreaming"))
    assert (session.state, session.turn is not None) == (TurnState.OBSCURED, True)
    session.fold(events(state("unknown"), state("running"), after=2))
    assert session.turn is not None
    assert session.turn.turn_id == 1
    assert folded(state("unknown")).state is TurnState.UNSURE


@requirement("SD-01")
def test_a_state_as_first_proposed_is_read_as_the_published_one() -> None:
    proposed = folded(
        update("state_change", state="running"), update("state_change", state="idle", stop_reason="end_turn")
    )
    assert proposed == folded(state("running"), state("idle", stopReason="end_turn"))


@requirement("PROMPT-V2-14")
def test_a_malformed_stop_reason_is_not_reported_and_still_ends_the_turn() -> None:
    session = folded(state("running"), state("idle", stopReason=7))
    assert session.turns.last is not None
    assert session.turns.last.stop_reason is None


def test_the_end_of_a_turn_says_itself_whether_it_was_an_interruption() -> None:
    turns = Turns()
    turns.apply(SessionStateUpdate(state=State.RUNNING), seq=1, at=AT)
    turns.apply(SessionStateUpdate(state=State.IDLE, stop_reason=StopReason.END_TURN), seq=2, at=AT)
    assert turns.last is not None
    assert (turns.last.ended, turns.last.interrupted) == (True, False)
