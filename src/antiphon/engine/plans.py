"""Plans: each update replaces the plan of its id, and no other."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.schema.v2.plans import PlanRemoved, PlanUpdate
from antiphon.schema.wire import Unknown


class Plan:
    __slots__ = ("id", "key", "latest", "position")

    def __init__(self, id: str, latest: PlanUpdate, *, position: int) -> None:
        self.id = id
        self.key = f"plan/{id}"
        self.latest = latest
        self.position = position

    def materialize(self) -> PlanUpdate:
        return self.latest


class Plans:
    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[str, Plan] = {}

    def __iter__(self) -> Iterator[Plan]:
        """In the order of first appearance."""
        return iter(self._by_id.values())

    def get(self, id: str) -> Plan | None:
        return self._by_id.get(id)

    def replace(self, update: PlanUpdate, *, position: int) -> Plan:
        id = update.plan["planId"] if isinstance(update.plan, Unknown) else update.plan.plan_id  # PLAN-V2-03
        plan = self._by_id.get(id)
        if plan is None:
            plan = self._by_id[id] = Plan(id, update, position=position)
        plan.latest = update
        return plan

    def remove(self, update: PlanRemoved) -> Plan | None:
        return self._by_id.pop(update.plan_id, None)
