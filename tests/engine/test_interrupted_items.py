"""When the agent is gone, what it offered to cancel is not offered any more, and ends."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from antiphon.engine.events import (
    Event,
    PromptAccepted,
    PromptQueued,
    PromptSent,
    QuestionClosed,
    QuestionEnd,
    QuestionOpened,
    Updated,
)
from antiphon.engine.session import Session
from antiphon.engine.snapshot import SessionRestorer, take_dirty
from antiphon.engine.turn import Cause, is_interruption
from antiphon.schema import v2
from antiphon.schema.antiphon.prompts import Delivery
from tests.requirements.marks import requirement

CALL, TERMINAL = v2.ToolCallId("c"), v2.TerminalId("t")
CALL_ABLE = v2.ToolCallCapabilities(cancel=v2.ToolCallCancelCapabilities())
TERMINAL_ABLE = v2.TerminalCapabilities(cancel=v2.TerminalCancelCapabilities())


def session(*updates: v2.SessionUpdate) -> Session:
    return Session().fold([Event(seq, 0, Updated.of(update)) for seq, update in enumerate(updates, start=1)])


def interrupted(fold: Session) -> list[v2.SessionUpdate]:
    return [body.update for body in fold.interrupt() if isinstance(body, Updated)]


@requirement("TOOL-V2-11", "TERMV2-12")
def test_what_ran_has_ended_and_offers_nothing() -> None:
    fold = session(
        v2.SessionToolCallUpdate(tool_call_id=CALL, title="C", capabilities=CALL_ABLE),
        v2.TerminalUpdate(terminal_id=TERMINAL, capabilities=TERMINAL_ABLE),
        v2.TerminalUpdate(terminal_id=v2.TerminalId("plain")),
        v2.TerminalUpdate(terminal_id=v2.TerminalId("done"), exit_status=v2.TerminalExitStatus(exit_code=0)),
    )
    gone = v2.TerminalExitStatus()
    assert interrupted(fold) == [
        v2.SessionToolCallUpdate(tool_call_id=CALL, status=v2.ToolCallStatus.FAILED, capabilities=None),
        v2.TerminalUpdate(terminal_id=TERMINAL, exit_status=gone, capabilities=None),
        v2.TerminalUpdate(terminal_id=v2.TerminalId("plain"), exit_status=gone),
    ]


def test_a_terminal_that_has_not_exited_is_at_work_and_not_shown_ahead() -> None:
    running = v2.TerminalUpdate(terminal_id=TERMINAL)
    exited = v2.TerminalUpdate(terminal_id=TERMINAL, exit_status=v2.TerminalExitStatus())
    for updates, at_work in (((running,), True), ((running, exited), False)):
        parts = take_dirty(session(*updates))
        restoring = SessionRestorer()
        restoring.add({key: part for key, part in parts.items() if part is not None})
        assert restoring.at_work is at_work


def test_the_message_of_an_accepted_prompt_is_shown_if_the_agent_did_not_come_to_it() -> None:
    fold, content = Session(), Raw(b'[{"type":"text","text":"hello"}]')
    for seq, body in enumerate(
        (
            PromptQueued(message_id="told", raw_content=content, delivery=Delivery.QUEUE, held=True),
            PromptAccepted(message_id="told"),
            Updated.of(
                v2.UserMessage(message_id=v2.MessageId("told"), content=[v2.TextContent(text="hello")])
            ),
            PromptQueued(message_id="untold", raw_content=content, delivery=Delivery.QUEUE, held=True),
            PromptSent(message_id="untold"),
            PromptAccepted(message_id="untold", became="agents"),
        ),
        start=1,
    ):
        fold.apply(Event(seq, 0, body))
    cut = interrupted(fold)
    assert cut[0] == v2.UserMessage(message_id=v2.MessageId("agents"), content=[v2.TextContent(text="hello")])
    assert [type(update) for update in cut[1:]] == [v2.SessionStateUpdate, v2.SessionStateUpdate]
    fold.fold([Event(seq, 0, Updated.of(update)) for seq, update in enumerate(cut, start=7)])
    assert interrupted(fold) == []


RUNNING = v2.SessionStateUpdate(state=v2.State.RUNNING)


def ended(reason: v2.StopReason, *updates: v2.SessionUpdate, **state: Any) -> dict[str, v2.ToolCallStatus]:
    """The statuses of the tool calls after a turn that its agent ended."""
    fold = session(RUNNING, *updates)
    bodies = fold.update(v2.SessionStateUpdate(state=v2.State.IDLE, stop_reason=reason, **state))
    fold.fold([Event(seq, 0, body) for seq, body in enumerate(bodies, start=fold.last_seq + 1)])
    return {call.id: call.status for call in fold.tools}


@requirement("PROMPT-V2-39")
def test_a_cancelled_or_failed_turn_ends_the_calls_that_its_agent_left() -> None:
    left = v2.SessionToolCallUpdate(tool_call_id=CALL, capabilities=CALL_ABLE)
    done = v2.SessionToolCallUpdate(tool_call_id=v2.ToolCallId("d"), status=v2.ToolCallStatus.COMPLETED)
    status = v2.ToolCallStatus
    for reason, found in (
        (v2.StopReason.CANCELLED, status.CANCELLED),
        (v2.StopReason.ERROR, status.FAILED),
        (v2.StopReason.END_TURN, status.PENDING),  # it may go on with it
    ):
        assert ended(reason, left, done) == {"c": found, "d": status.COMPLETED}


@requirement("PROMPT-V2-40")
def test_a_cancel_leaves_what_works_in_the_background() -> None:
    calls = [v2.SessionToolCallUpdate(tool_call_id=v2.ToolCallId(id)) for id in ("call", "shows", "other")]
    shown = v2.ToolCallContentChunk(
        tool_call_id=v2.ToolCallId("shows"), content=v2.Terminal(terminal_id=TERMINAL)
    )
    work = [
        v2.BackgroundToolCall(tool_call_id=v2.ToolCallId("call")),
        v2.BackgroundTerminal(terminal_id=TERMINAL),
    ]
    pending, cancelled = v2.ToolCallStatus.PENDING, v2.ToolCallStatus.CANCELLED
    found = ended(v2.StopReason.CANCELLED, *calls, shown, background=work)
    assert found == {"call": pending, "shows": pending, "other": cancelled}


@pytest.mark.parametrize("cause", [*Cause, None])
def test_a_cut_turn_and_its_questions_name_what_cut_them(cause: Cause | None) -> None:
    fold = session(RUNNING)
    asked = QuestionOpened(question_id="q", method="session/request_permission", params=Raw(b"{}"))
    fold.apply(Event(2, 0, asked))
    bodies = fold.interrupt(cause=cause)
    [closed] = [body for body in bodies if isinstance(body, QuestionClosed)]
    assert closed == QuestionClosed(question_id="q", end=QuestionEnd.EXPIRED, cause=cause)
    [state] = [body.update for body in bodies if isinstance(body, Updated)]
    assert isinstance(state, v2.SessionStateUpdate)
    assert state.error is not None
    named = {} if cause is None else {"cause": str(cause)}
    assert state.error.data == {"reason": "interrupted", **named}
    assert is_interruption(state.error)


def test_a_cancelled_turn_that_lost_its_agent_has_cancelled_its_calls() -> None:
    fold = session(RUNNING, v2.SessionToolCallUpdate(tool_call_id=CALL))
    updates = [body.update for body in fold.interrupt(cancelled=True) if isinstance(body, Updated)]
    assert updates[0] == v2.SessionToolCallUpdate(tool_call_id=CALL, status=v2.ToolCallStatus.CANCELLED)
