"""One fold: every event has its place, and strangers pass by."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given
from msgspec import Raw

from antiphon.engine import events as e
from antiphon.engine.events import Cursor, Event, JournalGap, Updated
from antiphon.engine.fold import _UPDATES
from antiphon.engine.items import KEPT
from antiphon.engine.session import Session
from antiphon.engine.snapshot import parts, take_dirty
from antiphon.schema.v2.notices import Notice
from antiphon.schema.v2.updates import SessionUpdate
from antiphon.schema.wire import Unknown
from tests.requirements.marks import requirement

from .journals import AT, JOURNALS, chunk, events, folded, replay, restore, update

CREATED = e.SessionCreated(session_id="s", cwd="/w", additional_directories=("/x",), meta={"k": 1})


def test_every_known_update_is_folded_or_passes_by_on_purpose() -> None:
    passing = {Notice}
    assert set(_UPDATES) | passing == {*get_args(SessionUpdate), Unknown}


def test_an_event_that_is_not_the_next_one_is_refused() -> None:
    session = folded(chunk("m", "x"))
    for seq in (1, 3):
        with pytest.raises(JournalGap):
            session.apply(Event(seq, AT, chunk("m", "y")))
    assert session == folded(chunk("m", "x"))


@requirement("EXT-07", "NOTE-05")
def test_strangers_pass_by_and_change_nothing() -> None:
    before = parts(folded(chunk("m", "x")))
    for stranger in (
        update("_antiphon_odd", x=1),
        update("notice", severity="info", title="Hi"),
        update("agent_message_chunk", messageId=3),
        Updated(raw=Raw(b"[1]")),
        Updated(raw=Raw(b"nonsense")),
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


@given(JOURNALS)
def test_many_events_at_once_fold_as_one_by_one(journal: list[Event]) -> None:
    singly = Session()
    for event in journal:
        singly.apply(event)
    together = Session().fold(journal)
    assert together == singly
    assert take_dirty(together) == take_dirty(singly)


def test_a_run_of_chunks_is_broken_by_a_gap_in_the_numbers() -> None:
    run = events(chunk("m", "a"), chunk("m", "b"))
    with pytest.raises(JournalGap):
        Session().fold([*run, Event(4, 0, run[-1].body)])


@requirement("EXT-09")
def test_what_is_unknown_is_replayed_as_it_was_the_last_of_it() -> None:
    odd = [update("_odd", x=number) for number in range(KEPT + 3)]
    session = folded(chunk("m", "x"), *odd, chunk("m", "y"))
    shown = [json.loads(raw) for raw in replay(session)]
    assert shown[1:] == [{"sessionUpdate": "_odd", "x": number} for number in range(3, KEPT + 3)]
    assert restore(parts(session), Cursor(session.last_seq)) == session
