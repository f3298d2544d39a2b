"""A snapshot, and the rest of the journal folded onto it, is the session; replay says all of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.engine import events as e
from antiphon.engine import prompts, questions
from antiphon.engine.events import AnyBody, Cursor, Event, Updated, decode_event, encode_event
from antiphon.engine.session import Session
from antiphon.engine.snapshot import parts, state_update, take_dirty
from tests.cpu_growth import assert_grows_in_proportion
from tests.requirements.marks import requirement

from .journals import (
    JOURNALS,
    asked,
    chunk,
    decoded,
    events,
    folded,
    queued,
    raw,
    replay,
    restore,
    state,
    text,
    update,
)

RECORDED = Path(__file__).parents[1] / "journals"


@given(JOURNALS, st.data())
def test_a_snapshot_at_any_cut_and_the_rest_fold_to_the_same_session(
    journal: list[Event], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(journal)))
    whole = Session().fold(journal)
    kept = parts(Session().fold(journal[:cut]))
    shuffled = {key: kept[key] for key in data.draw(st.permutations(list(kept)))}  # a store has its own order
    restored = restore(shuffled, Cursor(cut))
    assert restored == Session().fold(journal[:cut])
    assert restored.fold(journal[cut:]) == whole


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*/*.jsonl")), ids=lambda path: path.stem)
def test_a_recorded_session_can_be_cut_everywhere(path: Path) -> None:
    journal = decoded(path.read_bytes())
    whole = Session().fold(journal)
    for cut in range(len(journal) + 1):
        kept = parts(Session().fold(journal[:cut]))
        assert restore(kept, Cursor(cut)).fold(journal[cut:]) == whole, cut


def test_what_was_asked_and_settled_keeps_its_order_in_whatever_order_parts_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = folded(
        *(asked(id) for id in "badc"),
        *(queued(id) for id in "badc"),
        *(e.PromptWithdrawn(message_id=id) for id in "badc"),
    )
    kept = parts(session)
    restored = restore({key: kept[key] for key in sorted(kept)}, Cursor(session.last_seq))
    assert restored.questions.open == session.questions.open
    for each in (session, restored):
        monkeypatch.setattr(prompts, "REMEMBERED", 4)
        bodies: list[AnyBody] = [queued("e"), e.PromptWithdrawn(message_id="e")]
        bodies += [e.QuestionClosed(question_id=id, end=e.QuestionEnd.EXPIRED) for id in "ab"]
        each.fold(events(*bodies, after=each.last_seq))
        assert set(each.prompts.entries) == set("adce")  # "b" was the first to be settled
    assert restored == session


@given(JOURNALS, st.integers(1, 9))
def test_parts_updated_now_and_then_are_the_parts_of_the_whole(journal: list[Event], step: int) -> None:
    session = Session()
    kept = parts(session)
    for start in range(0, len(journal), step):
        session.fold(journal[start : start + step])
        for key, part in take_dirty(session).items():
            if part is None:
                kept.pop(key, None)
            else:
                kept[key] = part
    assert kept == parts(session)
    assert take_dirty(session) == {}


@given(JOURNALS)
def test_folding_a_replay_gives_what_was_replayed(journal: list[Event]) -> None:
    session = Session().fold(journal)
    updates = list(replay(session))
    again = Session().fold(events(*(Updated(raw=msgspec.Raw(update)) for update in updates)))
    assert [item.materialize() for item in again.items] == [item.materialize() for item in session.items]
    assert [item.key for item in again.items] == [item.key for item in session.items]
    assert list(replay(again)) == updates
    twice = [*updates, *updates]  # SESS-23: what a client holds already is replaced, not added to
    doubled = Session().fold(events(*(Updated(raw=msgspec.Raw(update)) for update in twice)))
    assert list(replay(doubled)) == updates


@given(JOURNALS)
def test_events_mean_the_same_after_they_were_written_and_read(journal: list[Event]) -> None:
    lines = [encode_event(event) for event in journal]
    read = [decode_event(line) for line in lines]
    assert read == journal
    assert Session().fold(read) == Session().fold(journal)


@given(JOURNALS)
def test_a_client_that_joins_by_replay_reaches_the_same_items_as_the_others(
    journal: list[Event],
) -> None:
    """Invariant 2: content is the same whether it was streamed, or replayed whole and then streamed on."""
    cut = len(journal) // 2
    joined = [Updated(raw=msgspec.Raw(update)) for update in replay(Session().fold(journal[:cut]))]
    bodies = [
        *joined,
        *(event.body for event in journal[cut:] if not isinstance(event.body, e.SessionCreated)),
    ]
    late = Session().fold(events(*bodies))
    assert [item.materialize() for item in late.items] == [
        item.materialize() for item in Session().fold(journal).items
    ]


@requirement("SESS-18", "SESS-25", "COMP-06")
def test_replay_is_each_item_whole_in_the_order_of_first_appearance() -> None:
    session = folded(
        update("plan_update", plan={"type": "items", "planId": "p", "entries": []}),
        chunk("m", "Let me "),
        update("compaction_summary_chunk", compactionId="k", content=text("sum")),
        update("tool_call_update", toolCallId="t", title="Read"),
        update("terminal_output_chunk", terminalId="x", data="4g=="),
        chunk("m", "see."),
        update("terminal_output_chunk", terminalId="x", data="grA="),
        update("compaction_update", compactionId="k", status="completed"),
        update("notice", severity="info", title="Not again"),
        update("session_info_update", title="T"),
        state("running"),
    )
    assert [msgspec.json.decode(line) for line in replay(session)] == [
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": []}},
        {"sessionUpdate": "agent_message", "messageId": "m", "content": [text("Let me see.")], "_meta": None},
        {
            "sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed",
            "summary": [text("sum")], "error": None, "_meta": None,
        },
        {
            "sessionUpdate": "tool_call_update", "toolCallId": "t", "name": None, "title": "Read",
            "kind": "other", "status": "pending", "content": [], "locations": [], "rawInput": None,
            "rawOutput": None, "capabilities": None, "_meta": None,
        },
        {
            "sessionUpdate": "terminal_update", "terminalId": "x", "command": None, "cwd": None,
            "output": {"data": "4oKw"}, "exitStatus": None, "size": None, "capabilities": None, "_meta": None,
        },
        {"sessionUpdate": "session_info_update", "title": "T", "updatedAt": None, "_meta": None},
    ]  # fmt: skip


@requirement("SESS-21")
def test_a_replay_closes_with_the_state_as_it_was_last_reported() -> None:
    assert msgspec.json.decode(state_update(Session())) == {"sessionUpdate": "state_update", "state": "idle"}
    working = folded(state("requires_action", background=[], _meta={"antiphon": {"waitingFor": ["q"]}}))
    assert msgspec.json.decode(state_update(working)) == {
        "sessionUpdate": "state_update",
        "state": "requires_action",
        "background": [],
        "_meta": {"antiphon": {"waitingFor": ["q"]}},
    }
    odd = folded(state("_dreaming", depth=3))
    assert msgspec.json.decode(state_update(odd)) == {
        "sessionUpdate": "state_update", "state": "_dreaming", "depth": 3,
    }  # fmt: skip


def test_only_what_changed_is_written_again() -> None:
    session = folded(chunk("a", "x"), chunk("b", "y"), queued("p"), asked("q"))
    assert set(take_dirty(session)) == {
        "item/000000000000001", "item/000000000000002", "queue", "prompt/p", "question/q",
    }  # fmt: skip
    session.fold(events(chunk("b", "z"), after=4))
    assert take_dirty(session) == {
        "item/000000000000002": msgspec.json.encode(
            {
                "position": 2,
                "update": {
                    "sessionUpdate": "agent_message",
                    "messageId": "b",
                    "content": [text("yz")],
                    "_meta": None,
                },
            }
        )
    }


def test_what_is_gone_is_named_so_that_it_can_be_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "REMEMBERED", 1)
    monkeypatch.setattr(questions, "REMEMBERED", 1)
    session = folded(
        update("plan_update", plan={"type": "items", "planId": "p", "entries": []}),
        *(queued("a"), e.PromptAccepted(message_id="a"), queued("b")),
        *(asked("a"), e.QuestionClosed(question_id="a", end=e.QuestionEnd.CANCELLED), asked("b")),
    )
    take_dirty(session)
    session.fold(
        events(
            update("plan_removed", planId="p"),
            e.PromptAccepted(message_id="b"),
            e.QuestionClosed(question_id="b", end=e.QuestionEnd.CANCELLED),
            after=7,
        )
    )
    gone = {key for key, part in take_dirty(session).items() if part is None}
    assert gone == {"item/000000000000001", "prompt/a", "question/a"}


@example(10, 1)
@given(st.integers(1, 50), st.integers(1, 5))
def test_replay_says_the_same_however_finely_a_message_was_cut(pieces: int, messages: int) -> None:
    finely = folded(*(chunk(f"m{n}", "x") for n in range(messages) for _ in range(pieces)))
    whole = folded(*(chunk(f"m{n}", "x" * pieces) for n in range(messages)))
    assert list(replay(finely)) == list(replay(whole))


def test_a_chunk_costs_the_same_however_long_its_message_is() -> None:
    """It fails where appending copies the message."""
    body = update("agent_message_chunk", messageId="m", content=text("x" * 100))

    def stream(chunks: int) -> None:
        session = Session()
        for seq in range(1, chunks + 1):
            session.apply(Event(seq, 0, body))
        assert len(session.messages[0].text) == 100 * chunks

    assert_grows_in_proportion(stream, 2_000, times=20)


def test_an_old_snapshot_without_newer_parts_restores_to_a_new_session() -> None:
    assert restore({}, Cursor(0)) == Session()
    assert raw({}) == msgspec.Raw(b"{}")
