"""Plans of v1 agents (24.4, PLAN)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.wire import Up, v1_update
from tests.requirements.marks import requirement

ENTRY = {"content": "a", "priority": "high", "status": "in_progress", "_meta": {"k": 1}}


@pytest.mark.parametrize("entries", [[], [ENTRY]])
def test_24_4_the_plan_of_v1_is_the_one_called_main(entries: list[Any]) -> None:
    up = Up()
    assert up.feed(v1_update("plan", entries=entries, meta={"k": 2})) == [
        {
            "sessionUpdate": "plan_update",
            "plan": {"type": "items", "planId": "main", "entries": entries},
            "_meta": {"k": 2},
        }
    ]
    assert up.lost == []


@requirement("PLAN-V2-06")
@pytest.mark.parametrize(
    "plan",
    [
        {"type": "items", "planId": "p", "entries": [ENTRY], "_meta": {"k": 3}},
        {"type": "file", "planId": "p", "uri": "file:///p"},
        {"type": "markdown", "planId": "p", "content": "# P"},
    ],
)
def test_plans_with_an_id_cross_as_they_are(plan: dict[str, Any]) -> None:
    assert Up().feed(v1_update("plan_update", plan=plan, meta={"k": 2})) == [
        {"sessionUpdate": "plan_update", "plan": plan, "_meta": {"k": 2}}
    ]


@requirement("PLAN-V2-06")
def test_a_removed_plan_is_removed() -> None:
    assert Up().feed(v1_update("plan_removed", planId="p")) == [
        {"sessionUpdate": "plan_removed", "planId": "p"}
    ]
