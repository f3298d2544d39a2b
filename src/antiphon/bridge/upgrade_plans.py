"""Plans of a v1 agent as v2 has them: the one plan gets an id, those of the unstable form have one (PLAN)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from antiphon.bridge.content import recast
from antiphon.schema import v1, v2

MAIN: Final = v2.PlanId("main")
"""The id of the plan that v1 does not name (24.4)."""


def plan(update: v1.Plan) -> v2.PlanUpdate:
    return v2.PlanUpdate(plan=v2.PlanItems(plan_id=MAIN, entries=_entries(update.entries)), meta=update.meta)


def plan_update(update: v1.PlanUpdate) -> v2.PlanUpdate:
    content: v2.PlanUpdateContent
    match update.plan:
        case v1.PlanItems() as given:
            content = v2.PlanItems(
                plan_id=v2.PlanId(given.plan_id), entries=_entries(given.entries), meta=given.meta
            )
        case v1.PlanFile() as given:
            content = recast(given, v2.PlanFile)
        case v1.PlanMarkdown() as given:
            content = recast(given, v2.PlanMarkdown)
    return v2.PlanUpdate(plan=content, meta=update.meta)


def plan_removed(update: v1.PlanRemoved) -> v2.PlanRemoved:
    return recast(update, v2.PlanRemoved)


def _entries(entries: Iterable[v1.PlanEntry]) -> list[v2.PlanEntry]:
    return [
        v2.PlanEntry(
            content=entry.content,
            priority=v2.PlanEntryPriority(entry.priority),
            status=v2.PlanEntryStatus(entry.status),
            meta=entry.meta,
        )
        for entry in entries
    ]
