"""Subagents and messages between sessions in the fold: patched by id, kept, replayed, interrupted."""

from __future__ import annotations

from antiphon.engine.events import Cursor, Updated
from antiphon.engine.session import forked
from antiphon.engine.snapshot import parts
from antiphon.schema import v2
from tests.engine.journals import events, folded, replay, restore, update
from tests.requirements.marks import requirement

WORKING = {"state": "running"}


@requirement("SUB-02")
def test_a_subagent_is_patched_by_its_id() -> None:
    session = folded(
        update("subagent_update", sessionId="c", title="T", capabilities={"cancel": {}}, state=WORKING),
        update(
            "subagent_update", sessionId="c", description="D", state={"state": "idle"}, _meta={"k": 1, "l": 2}
        ),
        update("subagent_update", sessionId="c", title=None, cwd="/w", _meta={"k": None}),
        update("subagent_update", sessionId="d"),
    )
    first, second = session.subagents
    assert (first.title, first.description, first.cwd, first.meta) == (None, "D", "/w", {"l": 2})
    assert first.can_cancel
    assert not first.working
    assert (second.can_cancel, second.working, second.state) == (False, False, None)
    assert second.materialize() == v2.SubagentUpdate(session_id=v2.SessionId("d"))


@requirement("SUB-01", "SUB-03")
def test_they_are_replayed_whole_at_their_places_and_restored() -> None:
    chunk = {"type": "text", "text": "b"}
    session = folded(
        update("subagent_update", sessionId="c", title="T"),
        update("session_message", messageId="m", content=[{"type": "text", "text": "a"}]),
        update("session_message_chunk", messageId="m", content=chunk),
        update("session_message", messageId="m", senderSessionId="c", recipientMessageId="r"),
        update("subagent_update", sessionId="c", state=WORKING),
    )
    told = [str(raw) for raw in replay(session)]
    assert len(told) == 2
    assert "subagent_update" in told[0]
    assert '"ab"' in told[1]
    assert restore(parts(session), Cursor(session.last_seq)) == session
    (note,) = session.session_messages
    assert (note.text, note.sender_session_id, note.recipient_message_id) == ("ab", "c", "r")


def test_a_subagent_at_work_is_interrupted_with_its_process() -> None:
    session = folded(
        update("subagent_update", sessionId="c", state=WORKING),
        update("subagent_update", sessionId="d", state={"state": "idle"}),
    )
    cut = [body.update for body in session.interrupt() if isinstance(body, Updated)]
    (one,) = [each for each in cut if isinstance(each, v2.SubagentUpdate)]
    assert one.session_id == "c"
    session.fold(events(*session.interrupt(), after=session.last_seq))
    assert not any(subagent.working for subagent in session.subagents)
    assert session.interrupt() == ()


def test_a_fork_has_no_part_in_the_subagents_of_its_source() -> None:
    session = folded(
        update("agent_message", messageId="m", content=[]),
        update("subagent_update", sessionId="c", title="T"),
    )
    made = forked(session)
    assert made is not None
    assert [type(each) for each in made] == [v2.AgentMessage]
