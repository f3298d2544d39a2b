"""What is kept for sessions that are not known is bounded, by number and by bytes."""

from __future__ import annotations

import pytest

from antiphon.client.protocol.early_updates import EarlyUpdates


def test_what_came_of_a_session_is_given_once_and_in_order() -> None:
    early: EarlyUpdates[int] = EarlyUpdates(most=10, most_bytes=100)
    for number in range(4):
        early.put("ab"[number % 2], number, 1)
    assert (early.take("a"), early.take("a"), len(early)) == ([0, 2], [], 2)
    early.clear()
    assert (early.take("b"), len(early)) == ([], 0)


def test_above_a_bound_the_session_that_was_named_first_is_dropped() -> None:
    early: EarlyUpdates[int] = EarlyUpdates(most=3, most_bytes=100)
    for number, session in enumerate("abbc"):
        early.put(session, number, 1)
    assert early.sessions == ["b", "c"]
    early.put("d", 4, 100)
    assert early.sessions == ["d"]
    early.put("e", 5, 101)
    assert len(early) == 0, "also where it is one alone"


def test_what_is_dropped_is_counted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    early: EarlyUpdates[int] = EarlyUpdates(most=1, most_bytes=100)
    for number in range(1001):
        early.put(str(number), number, 1)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 12
    assert told[-1].startswith("updates of an unknown session were dropped: 1000 so far")
