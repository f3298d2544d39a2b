"""Which turn an event belongs to, in whatever order an agent tells things."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from antiphon.client.protocol.turn_tracker import TurnTracker


class Handle:
    """A turn as far as spans care."""

    def __init__(self, message_id: str | None = None) -> None:
        self.message_id = message_id
        self.heard: list[str] = []

    def hear(self, event: str) -> None:
        self.heard.append(event)


class Told:
    """Spans, told what happens in one word each."""

    def __init__(self, *, serial: bool = False) -> None:
        self.made: list[Handle] = []
        self.tracker: TurnTracker[Handle, str] = TurnTracker(self._make, Handle.hear, serial=serial)
        self.over: dict[Handle, Any] = {}

    def _make(self) -> Handle:
        self.made.append(Handle())
        return self.made[-1]

    def event(self, event: str, message_id: str | None = None) -> Handle | None:
        turn = self.tracker.place(message_id)
        self.tracker.add(event, message_id)
        return turn

    def running(self) -> Handle | None:
        self.tracker.turn_opened()
        return self.event("running")

    def idle(self, end: str = "end") -> None:
        self.event("idle")
        self.over.update(dict.fromkeys(self.tracker.turn_ended(end), end))

    def accepted(self, turn: Handle) -> None:
        end = self.tracker.prompt_accepted(turn)
        if end is not None:
            self.over[turn] = end
        self.tracker.prompt_answered()


@pytest.mark.parametrize("order", list(permutations(["answer", "message", "running"])), ids=" ".join)
def test_a_turn_is_whole_in_whatever_order_its_beginning_is_told(order: tuple[str, ...]) -> None:
    for shown_before in (False, True):  # whether the agent has shown a prompt before
        told = Told()
        if shown_before:
            earlier = Handle("u0")
            told.tracker.prompt_sent()
            told.accepted(earlier)
            told.event("message", "u0")
            told.running()
            told.idle()
        turn = Handle("u1")
        told.tracker.prompt_sent()
        for step in order:
            if step == "answer":
                told.accepted(turn)
            elif step == "message":
                told.event("message", "u1")
            else:
                told.running()
        told.event("chunk")
        told.idle()
        assert sorted(turn.heard) == ["chunk", "idle", "message", "running"]
        assert turn.heard[-2:] == ["chunk", "idle"]
        assert told.over[turn] == "end"


def test_an_answer_that_comes_after_the_end_gives_the_whole_turn() -> None:
    for first in ("message", "running"):
        told = Told()
        turn = Handle("u1")
        told.tracker.prompt_sent()
        if first == "message":
            told.event("message", "u1")
            told.running()
        else:
            told.running()
            told.event("message", "u1")
        told.event("chunk")
        told.idle("over")
        told.accepted(turn)
        assert sorted(turn.heard) == ["chunk", "idle", "message", "running"]
        assert told.over[turn] == "over"
        assert told.tracker.unfinished() == []


def test_a_steered_prompt_hears_the_turn_it_joins_from_its_beginning() -> None:
    told = Told()
    first, second = Handle("u1"), Handle("u2")
    told.tracker.prompt_sent()
    told.accepted(first)
    told.event("u1", "u1")
    told.running()
    told.event("chunk")
    told.tracker.prompt_sent()
    told.accepted(second)
    assert second.heard == []  # it may be for later
    told.event("u2", "u2")
    told.idle()
    assert first.heard == ["u1", "running", "chunk", "u2", "idle"]
    assert second.heard == ["running", "chunk", "u2", "idle"]
    assert {first, second} <= set(told.over)


def test_a_prompt_answered_early_has_the_next_turn_and_nothing_of_this_one() -> None:
    told = Told()
    first, second = Handle("u1"), Handle("u2")
    told.tracker.prompt_sent()
    told.accepted(first)
    told.event("u1", "u1")
    told.running()
    told.tracker.prompt_sent()
    told.accepted(second)
    assert told.event("chunk") is first
    told.idle("one")
    assert (told.over.get(first), told.over.get(second)) == ("one", None)
    told.event("u2", "u2")
    assert told.running() is second
    told.idle("two")
    assert second.heard == ["u2", "running", "idle"]
    assert told.over[second] == "two"


def test_a_turn_that_the_agent_opens_has_a_handle_of_its_own() -> None:
    told = Told()
    assert told.event("before") is None
    own = told.running()
    assert own is told.made[0]
    assert told.event("chunk") is own
    told.idle()
    assert own.heard == ["running", "chunk", "idle"]
    assert told.over == {own: "end"}
    assert told.event("after") is None


def test_a_message_of_somebody_elses_is_nobodys_of_ours() -> None:
    told = Told()
    turn = Handle("u1")
    told.tracker.prompt_sent()
    told.event("theirs", "x")
    told.running()
    told.idle()
    told.accepted(turn)
    assert turn.heard == []
    assert told.tracker.unfinished() == [turn]


def test_one_by_one_the_next_prompt_has_its_turn_when_the_one_before_has_ended() -> None:
    told = Told(serial=True)
    first, second, third = Handle("u1"), Handle("u2"), Handle("u3")
    told.tracker.prompt_accepted(first)
    told.event("u1", "u1")
    told.running()
    for turn in (second, third):
        told.tracker.prompt_accepted(turn)
        assert told.event(str(turn.message_id), turn.message_id) is turn
    assert told.event("a") is first
    assert told.tracker.remove(first) is told.made[0]
    assert told.event("b") is second
    told.tracker.remove(second)
    assert told.event("c") is third
    told.idle()
    assert (first.heard, second.heard, third.heard) == (
        ["u1", "running", "a"],
        ["u2", "b"],
        ["u3", "c", "idle"],
    )


def test_one_by_one_a_prompt_that_is_refused_leaves_the_turn_alone() -> None:
    told = Told(serial=True)
    first, second = Handle("u1"), Handle("u2")
    told.tracker.prompt_accepted(first)
    told.running()
    told.tracker.prompt_accepted(second)
    assert told.tracker.remove(second) is None
    assert told.event("a") is first
