"""Plans coexist, and an update replaces its own."""

from __future__ import annotations

from typing import Any

from antiphon.engine.events import Updated
from antiphon.schema.v2.plans import PlanEntry, PlanEntryPriority, PlanEntryStatus, PlanItems, PlanUpdate
from antiphon.schema.wire import Unknown
from tests.requirements.marks import requirement

from .journals import folded, update


def plan(id: str, *contents: str) -> Updated:
    entries = [{"content": content, "priority": "high", "status": "pending"} for content in contents]
    return update("plan_update", plan={"type": "items", "planId": id, "entries": entries})


def items(id: str, *contents: str) -> Any:
    entries = [
        PlanEntry(content=content, priority=PlanEntryPriority.HIGH, status=PlanEntryStatus.PENDING)
        for content in contents
    ]
    return PlanUpdate(plan=PlanItems(plan_id=id, entries=entries))  # type: ignore[arg-type]


@requirement("PLAN-V2-02")
def test_an_update_replaces_the_plan_of_its_id_in_place_and_no_other() -> None:
    session = folded(plan("a", "1", "2"), plan("b", "x"), plan("a", "3"))
    assert [item.materialize() for item in session.plans] == [items("a", "3"), items("b", "x")]


@requirement("PLAN-V2-03")
def test_a_plan_of_an_unknown_type_still_replaces() -> None:
    session = folded(plan("a", "1"), update("plan_update", plan={"type": "_tree", "planId": "a", "root": 1}))
    assert [item.materialize() for item in session.plans] == [
        PlanUpdate(plan=Unknown(type="_tree", planId="a", root=1))
    ]


@requirement("PLAN-V2-06")
def test_a_plan_that_was_removed_is_gone_and_comes_back_at_a_new_place() -> None:
    removed = update("plan_removed", planId="a")
    session = folded(plan("a", "1"), plan("b"), removed, removed)
    assert [item.key for item in session.items] == ["plan/b"]
    again = folded(plan("a", "1"), plan("b"), removed, plan("a", "2"))
    assert [item.key for item in again.items] == ["plan/b", "plan/a"]
    assert again.plans.get("a") is again.items[1]
