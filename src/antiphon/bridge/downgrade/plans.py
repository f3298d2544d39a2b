"""Plans for a v1 client: one plan that has all entries, or plan by plan if the client can show several (24.4,
PLAN)."""

from __future__ import annotations

from typing import Any, TypeAlias

from antiphon.bridge import losses
from antiphon.bridge.content import twin
from antiphon.bridge.losses import Ledger, mark
from antiphon.schema import v1, v2

Sent: TypeAlias = v1.Plan | v1.PlanUpdate | v1.PlanRemoved

_PRIORITY = {v2.PlanEntryPriority(priority): priority for priority in v1.PlanEntryPriority}
_STATUS = {v2.PlanEntryStatus(status): status for status in v1.PlanEntryStatus}


class Plans:
    """The plans of a session as one v1 client knows them."""

    __slots__ = ("_by_id", "_ledger", "_several", "_shown")

    def __init__(self, ledger: Ledger, *, several: bool) -> None:
        self._ledger = ledger
        self._several = several
        """Whether the client takes plans one by one (PLAN-V1-03)."""
        self._by_id: dict[str, tuple[list[v1.PlanEntry], list[v2.PlanEntry]]] = {}
        """By id, in the order of first appearance: the entries, and those that v1 cannot express."""
        self._shown: list[v1.PlanEntry] | None = None

    def update(self, update: v2.PlanUpdate) -> list[Sent]:
        plan = update.plan
        if isinstance(plan, v2.PlanItems):
            entries = self._entries(plan)
            self._by_id[plan.plan_id] = entries
            meta = {**(plan.meta or {}), **(update.meta or {})} or None
            if not self._several:
                return self._together(meta, new=True)
            shown, dropped = entries
            items = v1.PlanItems(
                plan_id=v1.PlanId(plan.plan_id),
                entries=shown,
                meta=_with_dropped(plan.meta, dropped),
            )
            return [v1.PlanUpdate(plan=items, meta=update.meta)]
        if self._several and isinstance(plan, v2.PlanFile | v2.PlanMarkdown):
            self._by_id[plan.plan_id] = ([], [])
            return [v1.PlanUpdate(plan=twin(plan, v1), meta=update.meta)]
        self._ledger.lose(losses.PLAN_TYPE, update)
        plan_id = plan.get("planId") if isinstance(plan, dict) else plan.plan_id
        if plan_id not in self._by_id:
            return []
        # PLAN-V2-03: a plan that cannot be shown replaces the earlier one, too.
        if self._several:
            del self._by_id[plan_id]
            return [v1.PlanRemoved(plan_id=v1.PlanId(plan_id))]
        self._by_id[plan_id] = ([], [])
        return self._together(update.meta, new=False)

    def removed(self, update: v2.PlanRemoved) -> list[Sent]:
        if self._by_id.pop(update.plan_id, None) is None:
            return []
        if self._several:
            return [v1.PlanRemoved(plan_id=v1.PlanId(update.plan_id), meta=update.meta)]
        return self._together(update.meta, new=False)

    def _together(self, meta: dict[str, Any] | None, *, new: bool) -> list[Sent]:
        entries = [entry for shown, _ in self._by_id.values() for entry in shown]
        dropped = [entry for _, dropped in self._by_id.values() for entry in dropped]
        if not new and entries == self._shown:
            return []
        self._shown = entries
        return [v1.Plan(entries=entries, meta=_with_dropped(meta, dropped))]

    def _entries(self, plan: v2.PlanItems) -> tuple[list[v1.PlanEntry], list[v2.PlanEntry]]:
        shown, dropped = [], []
        for entry in plan.entries:
            if entry.status == v2.PlanEntryStatus.CANCELLED:
                self._ledger.lose(losses.PLAN_ENTRY_CANCELLED, entry)
                dropped.append(entry)
                continue
            original = {}
            if entry.priority not in _PRIORITY:
                original["priority"] = str(entry.priority)
            if entry.status not in _STATUS:
                original["status"] = str(entry.status)
            if original:
                self._ledger.lose(losses.PLAN_ENTRY_VALUE, entry)
            shown.append(
                v1.PlanEntry(
                    content=entry.content,
                    priority=_PRIORITY.get(entry.priority, v1.PlanEntryPriority.MEDIUM),
                    status=_STATUS.get(entry.status, v1.PlanEntryStatus.PENDING),
                    meta=mark(entry.meta, original) if original else entry.meta,
                )
            )
        return shown, dropped


def _with_dropped(meta: dict[str, Any] | None, dropped: list[v2.PlanEntry]) -> dict[str, Any] | None:
    return mark(meta, {"entries": dropped}) if dropped else meta
