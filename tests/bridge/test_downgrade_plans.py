"""Plans towards v1 clients: one list of all, or each by its id."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.wire import Down, capabilities, update
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"


def entry(content: str, priority: str = "medium", status: str = "pending", **fields: Any) -> dict[str, Any]:
    return {"content": content, "priority": priority, "status": status, **fields}


def plan(id: str, *entries: dict[str, Any], **fields: Any) -> Any:
    return update("plan_update", plan={"type": "items", "planId": id, "entries": list(entries)}, **fields)


def test_24_4_items_are_the_plan_and_its_id_is_dropped() -> None:
    down = Down()
    assert down.feed(plan("p", entry("a", "high", "in_progress"), meta={"k": 1})) == [
        {"sessionUpdate": "plan", "entries": [entry("a", "high", "in_progress")], "_meta": {"k": 1}}
    ]
    assert down.lost == []


def test_24_4_several_plans_are_concatenated_in_order_of_first_sight() -> None:
    down = Down()
    sent = down.feed(plan("p", entry("a")), plan("q", entry("b")), plan("p", entry("c"), entry("d")))
    assert [[one["content"] for one in each["entries"]] for each in sent] == [
        ["a"],
        ["a", "b"],
        ["c", "d", "b"],
    ]


@requirement("PLAN-V2-06")
def test_a_removed_plan_goes_from_the_list() -> None:
    down = Down()
    down.feed(plan("p", entry("a")), plan("q", entry("b")))
    sent = down.feed(update("plan_removed", planId="p"), update("plan_removed", planId="never"))
    assert sent == [{"sessionUpdate": "plan", "entries": [entry("b")]}]


def test_24_4_cancelled_entries_are_dropped_and_announced() -> None:
    down = Down()
    cancelled = entry("a", status="cancelled")
    assert down.feed(plan("p", cancelled, entry("b"))) == [
        {"sessionUpdate": "plan", "entries": [entry("b")], "_meta": {ORIGINAL: {"entries": [cancelled]}}}
    ]
    assert down.lost == ["plan_entry_cancelled"]


@pytest.mark.parametrize(
    ("given", "sent", "original"),
    [
        (entry("a", priority="_odd"), entry("a"), {"priority": "_odd"}),
        (entry("a", status="_odd"), entry("a"), {"status": "_odd"}),
    ],
)
def test_24_4_unknown_values_of_an_entry(given: Any, sent: Any, original: Any) -> None:
    down = Down()
    assert down.feed(plan("p", given))[0]["entries"] == [{**sent, "_meta": {ORIGINAL: original}}]
    assert down.lost == ["plan_entry_value"]


@requirement("PLAN-V2-03")
@pytest.mark.parametrize(
    "other",
    [
        {"type": "markdown", "planId": "p", "content": "# x"},
        {"type": "file", "planId": "p", "uri": "file:///x"},
        {"type": "_odd", "planId": "p"},
    ],
)
def test_another_type_of_plan_still_replaces_what_was(other: Any) -> None:
    down = Down()
    assert down.feed(update("plan_update", plan=other)) == []
    down.feed(plan("p", entry("a")))
    assert down.feed(update("plan_update", plan=other)) == [{"sessionUpdate": "plan", "entries": []}]
    assert down.feed(update("plan_update", plan=other)) == []
    assert set(down.lost) == {"plan_type"}


class TestAClientThatKnowsPlansById:
    @requirement("PLAN-V1-03")
    def test_gets_them_one_by_one(self) -> None:
        down = Down(capabilities(plan={}))
        given: list[Any] = [
            {
                "sessionUpdate": "plan_update",
                "plan": {"type": "items", "planId": "p", "entries": [entry("a")]},
            },
            {"sessionUpdate": "plan_update", "plan": {"type": "markdown", "planId": "q", "content": "# x"}},
            {"sessionUpdate": "plan_update", "plan": {"type": "file", "planId": "q", "uri": "file:///x"}},
            {"sessionUpdate": "plan_removed", "planId": "p"},
        ]
        assert down.feed(*(update(**{"tag": one["sessionUpdate"], **_rest(one)}) for one in given)) == given
        assert down.lost == []

    @requirement("PLAN-V2-03")
    def test_a_plan_of_unknown_type_removes_what_was(self) -> None:
        down = Down(capabilities(plan={}))
        odd = update("plan_update", plan={"type": "_odd", "planId": "p"})
        assert down.feed(odd) == []
        down.feed(plan("p", entry("a")))
        assert down.feed(odd) == [{"sessionUpdate": "plan_removed", "planId": "p"}]

    def test_cancelled_entries_are_dropped_here_too(self) -> None:
        down = Down(capabilities(plan={}))
        cancelled = entry("a", status="cancelled")
        sent = down.feed(plan("p", cancelled))
        assert sent[0]["plan"] == {
            "type": "items", "planId": "p", "entries": [], "_meta": {ORIGINAL: {"entries": [cancelled]}},
        }  # fmt: skip


def _rest(one: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key != "sessionUpdate"}
