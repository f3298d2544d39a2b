"""A journal has no gaps and no repeats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.journal import START, Cursor, Journal, JournalGap, number

from .journals import AT, chunk, events

FIVE = events(*(chunk("m", str(n)) for n in range(5)))


def test_bodies_are_numbered_from_the_cursor_on() -> None:
    numbered = number([chunk("m", "x"), chunk("m", "y")], after=7, at=AT)
    assert [(event.seq, event.at) for event in numbered] == [(8, AT), (9, AT)]


@pytest.mark.parametrize("wrong", [FIVE[:2], FIVE[3:], [FIVE[2], FIVE[2]], [FIVE[2], FIVE[4]]])
def test_a_gap_or_a_repeat_is_refused_and_nothing_is_appended(wrong: list[object]) -> None:
    journal = Journal(FIVE[:2])
    with pytest.raises(JournalGap):
        journal.append(wrong)  # type: ignore[arg-type]
    assert list(journal) == FIVE[:2]


def test_events_after_a_cursor_come_in_pages() -> None:
    journal = Journal(FIVE)
    assert list(journal.after(START)) == FIVE
    assert list(journal.after(Cursor(2), limit=2)) == FIVE[2:4]
    assert list(journal.after(journal.last)) == []
    with pytest.raises(JournalGap):
        journal.after(Cursor(6))


@given(st.integers(0, 7), st.integers(0, 7))
def test_a_tail_forgets_what_everybody_has_seen(seen: int, cursor: int) -> None:
    journal = Journal(FIVE)
    journal.forget(Cursor(seen))
    assert journal.last == 5
    assert len(journal) == max(0, 5 - seen)
    if min(seen, 5) <= cursor <= 5:
        assert list(journal.after(Cursor(cursor))) == FIVE[cursor:]
    else:
        with pytest.raises(JournalGap):
            journal.after(Cursor(cursor))
