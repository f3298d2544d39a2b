"""A prompt is taken exactly once, in the order and the manner that was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from antiphon.engine import events as e
from antiphon.engine import prompts as prompts_module
from antiphon.engine.events import AnyBody, Cursor, Updated
from antiphon.engine.prompt_states import PromptState, Refusal
from antiphon.engine.prompts import Entry, Next, Outcome, Takes
from antiphon.engine.session import Session
from antiphon.engine.snapshot import parts
from antiphon.engine.turn import TurnState
from antiphon.errors import ErrorObject
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.v2.content import TextContent
from antiphon.schema.v2.messages import UserMessage
from antiphon.schema.v2.prompt import StopReason
from tests.requirements.marks import requirement

from .journals import asked, chunk, commit, folded, prompts, queued, raw, restore, state, text

HELLO = [TextContent(text="hello")]


def order(session: Session) -> list[str]:
    return [entry.message_id for entry in session.queue]


def taken(session: Session, *, at_break_point: bool = False) -> str | None:
    found = session.prompts.next(session.state, Takes(steer=at_break_point))
    return None if found is None else found.entry.message_id


@given(st.lists(prompts(), max_size=20))
def test_what_is_settled_stays_settled(bodies: list[AnyBody]) -> None:
    """Whatever a journal says: settled prompts never come back, and the queue holds the queued ones."""
    session = Session()
    settled: dict[str, PromptState] = {}
    for body in bodies:
        commit(session, [body])
        for id, found in settled.items():
            entry = session.prompts.get(id)
            assert entry is not None
            assert entry.state is found
        settled |= {id: entry.state for id, entry in session.prompts.entries.items() if entry.settled}
        states = {id: entry.state for id, entry in session.prompts.entries.items()}
        assert sorted(order(session)) == sorted(i for i, s in states.items() if s is PromptState.QUEUED)
        assert {entry.message_id for entry in session.prompts.sent} == {
            id for id, found in states.items() if found is PromptState.SENT
        }


def test_a_submitted_prompt_waits_with_the_id_it_will_have() -> None:
    session = Session()
    outcome = session.prompts.submit(
        queued("m", "hello", held=True, operation_id="op", sender="ann"), state=session.state
    )
    commit(session, outcome.events)
    entry = Entry(
        message_id="m",
        raw_content=raw([text("hello")]),
        delivery=Delivery.QUEUE,
        held=True,
        operation_id="op",
        sender="ann",
    )
    assert outcome.entry == entry
    assert session.queue == [entry]
    assert session.queue[0].content == HELLO


def test_the_same_operation_is_one_prompt_and_one_outcome_also_after_a_restart() -> None:
    session = Session()
    commit(
        session,
        session.prompts.submit(queued("m", held=True, operation_id="op"), state=session.state).events,
    )
    commit(session, session.prompts.accept("m").events)
    restarted = restore(parts(session), Cursor(session.last_seq))
    again = restarted.prompts.submit(queued("n", held=True, operation_id="op"), state=session.state)
    assert again == Outcome(entry=session.prompts.get("m"), repeated=True)
    assert again.entry is not None
    assert again.entry.state is PromptState.ACCEPTED


def test_a_rejected_operation_is_rejected_again() -> None:
    session = folded(queued("m", operation_id="op", held=True), state("running"))
    commit(session, session.cancel().events)
    again = session.prompts.submit(queued("n", held=True, operation_id="op"), state=session.state)
    assert again.entry is not None
    assert again.entry.error == ErrorObject(-32800, "Request cancelled")
    assert again.events == ()


def test_open_prompts_are_never_forgotten_and_settled_ones_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prompts_module, "REMEMBERED", 2)
    session = folded(queued("open", operation_id="0"))
    for n in "abc":
        commit(session, [queued(n, operation_id=n), e.PromptAccepted(message_id=n)])
    assert set(session.prompts.entries) == {"open", "b", "c"}
    assert session.prompts.of_operation("a") is None
    assert restore(parts(session), Cursor(session.last_seq)) == session


@requirement("PROMPT-V2-01")
def test_an_empty_prompt_is_refused_before_insertion() -> None:
    outcome = Session().prompts.submit(
        e.PromptQueued(message_id="m", raw_content=Raw(b" [ ] "), held=True), state=TurnState.IDLE
    )
    assert outcome == Outcome(refusal=Refusal.EMPTY)
    assert Refusal.EMPTY.to_wire().code == -32602


@requirement("PROMPT-V2-04", "SD-07")
def test_accepting_gives_the_answer_and_then_the_user_message_at_its_place() -> None:
    session = folded(chunk("before", "x"), queued("m", "hello"))
    bodies = commit(session, session.prompts.accept("m").events)
    assert bodies[0] == e.PromptAccepted(message_id="m")
    assert isinstance(bodies[1], Updated)
    assert bodies[1].update == UserMessage(message_id="m", content=HELLO)  # type: ignore[arg-type]
    assert [message.key for message in session.messages] == ["message/agent/before", "message/user/m"]
    assert session.prompts.accept("m") == Outcome(entry=session.prompts.get("m"), repeated=True)


def test_an_upstream_agent_names_the_message_and_sends_it_itself() -> None:
    session = folded(queued("m"), e.PromptSent(message_id="m"))
    bodies = commit(session, session.prompts.accept("m", became="theirs", echo=False).events)
    assert bodies == [e.PromptAccepted(message_id="m", became="theirs")]
    commit(session, session.run())
    assert session.turn is not None
    assert session.turn.prompts == ("theirs",)


def test_a_prompt_is_sent_at_most_once() -> None:
    session = folded(queued("m"))
    assert commit(session, session.prompts.send("m").events) == [e.PromptSent(message_id="m")]
    assert session.prompts.send("m").events == ()
    assert session.prompts.send("m").repeated


def test_nothing_is_taken_while_the_agent_has_one_it_has_not_answered() -> None:
    session = folded(queued("m"), queued("n"), e.PromptSent(message_id="m"))
    assert taken(session) is None
    commit(session, session.prompts.accept("m").events)
    assert taken(session) == "n"


@requirement("PROMPT-V2-33")
def test_a_sent_prompt_is_withdrawn_only_by_the_agent_that_has_it() -> None:
    session = folded(queued("m"), e.PromptSent(message_id="m"))
    assert session.prompts.withdraw("m").refusal is Refusal.WITH_AGENT
    commit(session, session.prompts.withdraw("m", returned=True).events)
    assert session.prompts.entries["m"].state is PromptState.WITHDRAWN


def test_what_was_sent_and_not_answered_is_rejected_when_its_agent_is_lost() -> None:
    session = folded(queued("m", held=True), e.PromptSent(message_id="m"))
    commit(session, session.interrupt())
    entry = session.prompts.entries["m"]
    assert entry.state is PromptState.REJECTED
    assert entry.error == ErrorObject(-32603, "The agent was lost", {"reason": "interrupted"})


def test_an_edit_keeps_id_delivery_and_place_and_what_is_taken_is_the_new_content() -> None:
    session = folded(queued("a"), queued("b", delivery=Delivery.QUEUE), queued("c"))
    commit(session, session.prompts.edit("b", HELLO).events)
    assert order(session) == ["a", "b", "c"]
    bodies = session.prompts.accept("b").events
    assert isinstance(bodies[1], Updated)
    assert bodies[1].update == UserMessage(message_id="b", content=HELLO)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("id", "before", "expected"),
    [("c", "a", "cab"), ("a", None, "bca"), ("a", "c", "bac"), ("b", "b", "abc"), ("b", "a", "bac")],
)
def test_a_prompt_is_moved_before_another_or_to_the_end(id: str, before: str | None, expected: str) -> None:
    session = folded(*(queued(name) for name in "abc"))
    commit(session, session.prompts.move(id, before=before).events)
    assert "".join(order(session)) == expected


@requirement("QUEUE-03")
@pytest.mark.parametrize(
    ("settle", "refusal", "wire"),
    [
        (e.PromptAccepted(message_id="m"), Refusal.ALREADY_DELIVERED, -32010),
        (e.PromptWithdrawn(message_id="m"), Refusal.UNKNOWN_MESSAGE_ID, -32002),
        (e.PromptSent(message_id="m"), Refusal.ALREADY_DELIVERED, -32010),
    ],
)
def test_what_is_no_longer_queued_is_neither_edited_nor_moved(
    settle: AnyBody, refusal: Refusal, wire: int
) -> None:
    session = folded(queued("m"), queued("n"), settle)
    assert session.prompts.edit("m", HELLO).refusal is refusal
    assert session.prompts.move("m").refusal is refusal
    assert session.prompts.move("n", before="m").refusal is refusal
    assert refusal.to_wire().code == wire
    assert refusal.to_wire().data == {"reason": refusal.value}


def test_a_withdrawal_can_be_retried_and_an_accepted_prompt_is_not_withdrawn() -> None:
    session = folded(queued("m"), queued("n"), e.PromptAccepted(message_id="n"))
    assert commit(session, session.prompts.withdraw("m").events) == [e.PromptWithdrawn(message_id="m")]
    assert session.prompts.withdraw("m") == Outcome(entry=session.prompts.get("m"), repeated=True)
    assert session.prompts.withdraw("n").refusal is Refusal.ALREADY_DELIVERED
    assert session.prompts.withdraw("never").refusal is Refusal.UNKNOWN_MESSAGE_ID


@requirement("PROMPT-V2-32")
def test_queued_prompts_wait_for_the_end_of_the_turn_in_the_order_received() -> None:
    session = folded(state("running"), queued("a"), queued("b"))
    assert taken(session, at_break_point=True) is None
    commit(session, session.end(StopReason.END_TURN))
    assert taken(session) == "a"


def test_a_steering_prompt_is_taken_at_a_break_point_and_before_queued_ones() -> None:
    session = folded(state("running"), queued("a"), queued("b", delivery=Delivery.STEER))
    assert taken(session) is None
    assert taken(session, at_break_point=True) == "b"
    commit(session, session.end(StopReason.END_TURN))
    assert taken(session) == "b"  # the turn ended first: it is a prompt like others, and still the next


def test_a_steering_prompt_does_not_answer_a_question() -> None:
    session = folded(
        state("running"), asked("q"), state("requires_action"), queued("a", delivery=Delivery.STEER)
    )
    assert taken(session, at_break_point=True) is None


def test_steering_without_a_turn_is_refused_where_injected_and_a_plain_prompt_where_held() -> None:
    def submit(*, held: bool) -> Outcome:
        return Session().prompts.submit(queued("m", held=held, delivery=Delivery.STEER), state=TurnState.IDLE)

    assert submit(held=False).refusal is Refusal.NO_RUNNING_TURN
    assert submit(held=True).refusal is None


def test_an_interrupting_prompt_cancels_the_turn_first_and_touches_no_other_entry() -> None:
    session = folded(state("running"), queued("a", held=True), queued("b", delivery=Delivery.INTERRUPT))
    first = session.prompts.next(session.state)
    assert first == Next(session.prompts.entries["b"], cancel_first=True)
    commit(session, session.end(StopReason.CANCELLED))
    assert taken(session) == "b"
    assert order(session) == ["a", "b"]


@requirement("PROMPT-V2-34")
def test_cancel_answers_held_prompts_and_pauses_injected_ones() -> None:
    session = folded(state("running"), queued("a", held=True), queued("b"), queued("c", held=True))
    cancelled = session.cancel()
    rejected = [body.message_id for body in cancelled.events if isinstance(body, e.PromptRejected)]
    assert rejected == ["a", "c"]
    commit(session, cancelled.events)
    commit(session, session.end(StopReason.CANCELLED))
    assert order(session) == ["b"]
    assert taken(session) is None  # a cancel never starts the queue
    assert session.cancel().events == ()


@pytest.mark.parametrize("how", ["prompt", "resume"])
def test_a_paused_queue_goes_on_with_the_next_prompt_or_when_asked(how: str) -> None:
    session = folded(state("running"), queued("a"))
    commit(session, session.cancel().events)
    commit(session, session.end(StopReason.CANCELLED))
    if how == "prompt":
        commit(session, session.prompts.submit(queued("b", held=True), state=session.state).events)
    else:
        commit(session, session.prompts.resume())
    assert taken(session) == "a"
    assert session.prompts.resume() == ()


def test_what_the_agent_has_is_answered_by_it_on_cancel_and_by_us_on_close() -> None:
    session = folded(queued("m", held=True), e.PromptSent(message_id="m"))
    assert session.cancel().events == ()
    commit(session, session.close())
    assert session.prompts.entries["m"].error == ErrorObject(-32800, "Request cancelled")


def test_a_cancel_that_names_a_prompt_is_ignored_once_its_turn_has_ended() -> None:
    session = folded(queued("p"))
    commit(session, session.prompts.accept("p").events)
    commit(session, session.run())
    turn = session.cancel(message_id="p").turn
    assert turn is session.turn
    assert turn is not None
    commit(session, session.end(StopReason.END_TURN))
    commit(session, session.run())
    assert session.cancel(message_id="p").turn is None


def test_a_second_prompt_under_the_same_id_or_operation_changes_nothing() -> None:
    session = folded(queued("m", "first", operation_id="op"))
    before = session.queue
    commit(session, [queued("m", "second"), queued("n", "third", operation_id="op")])
    assert session.queue == before
