"""When the agent is gone, what it offered to cancel is not offered any more, and ends."""

from __future__ import annotations

from msgspec import Raw

from antiphon.engine.events import Event, PromptAccepted, PromptQueued, PromptSent, Updated
from antiphon.engine.session import Session
from antiphon.engine.snapshot import SessionRestorer, take_dirty
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
