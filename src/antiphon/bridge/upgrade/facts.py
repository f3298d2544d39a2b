"""Updates that v1 and v2 write nearly alike: session info, usage, notices, compactions, subagents, plans.

Catalogue: 24.4, PLAN.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import UNSET, structs

from antiphon.bridge import losses
from antiphon.bridge.content import ContentUp, recast, twin
from antiphon.bridge.losses import Ledger, mark
from antiphon.bridge.proposed import normalize_state
from antiphon.schema import v1, v2
from antiphon.schema.repair import repair

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


class Facts:
    """Stateless: each update is upgraded by itself."""

    __slots__ = ("_content", "_ledger")

    def __init__(self, content: ContentUp, ledger: Ledger) -> None:
        self._content = content
        self._ledger = ledger

    def info(self, update: v1.SessionInfoUpdate) -> v2.SessionInfoUpdate:
        upgraded = recast(update, v2.SessionInfoUpdate)
        if isinstance(update.updated_at, str) and not is_rfc3339(update.updated_at):
            self._ledger.lose(losses.UPDATED_AT, update)
            meta = mark(update.meta or None, {"updatedAt": update.updated_at})
            return structs.replace(upgraded, updated_at=UNSET, meta=meta)
        return upgraded

    def usage(self, update: v1.UsageUpdate) -> v2.UsageUpdate:
        cost = UNSET if update.cost is None else recast(update.cost, v2.Cost)  # USAGE-04
        return recast(update, v2.UsageUpdate, cost=cost)

    def notice(self, notice: v1.Notice) -> v2.Notice:
        return recast(notice, v2.Notice, severity=v2.NoticeSeverity(notice.severity))

    def compaction(self, update: v1.CompactionUpdate) -> v2.CompactionUpdate:
        summary = self._content.blocks(update.summary) if isinstance(update.summary, list) else update.summary
        return recast(update, v2.CompactionUpdate, status=v2.CompactionStatus(update.status), summary=summary)

    def compaction_chunk(self, chunk: v1.CompactionSummaryChunk) -> v2.CompactionSummaryChunk:
        return recast(chunk, v2.CompactionSummaryChunk, content=self._content.block(chunk.content))

    def subagent(self, update: v1.SubagentUpdate) -> v2.SubagentUpdate:
        fields = structs.asdict(update)
        if isinstance(update.state, v1.StateUpdate):
            state: v2.StateUpdate = repair(2).build(v2.StateUpdate, msgspec.to_builtins(update.state))
            fields["state"] = normalize_state(state)
        if isinstance(update.capabilities, v1.SubagentSessionCapabilities):
            fields["capabilities"] = twin(update.capabilities, v2)
        return v2.SubagentUpdate(**fields)

    def session_message(self, update: v1.SessionMessage) -> v2.SessionMessage:
        content = self._content.blocks(update.content) if isinstance(update.content, list) else update.content
        return recast(update, v2.SessionMessage, content=content)

    def session_message_chunk(self, chunk: v1.SessionMessageChunk) -> v2.SessionMessageChunk:
        return recast(chunk, v2.SessionMessageChunk, content=self._content.block(chunk.content))


def is_rfc3339(time: str) -> bool:
    """Whether a time is written as v2 wants it; v1 takes any ISO 8601 (SESS-32)."""
    return _RFC3339.fullmatch(time) is not None


MAIN: Final = v2.PlanId("main")
"""The id of the plan that v1 does not name (24.4)."""


def plan(update: v1.Plan) -> v2.PlanUpdate:
    return v2.PlanUpdate(plan=v2.PlanItems(plan_id=MAIN, entries=twin(update.entries, v2)), meta=update.meta)


def plan_update(update: v1.PlanUpdate) -> v2.PlanUpdate:
    return v2.PlanUpdate(plan=twin(update.plan, v2), meta=update.meta)


def plan_removed(update: v1.PlanRemoved) -> v2.PlanRemoved:
    return recast(update, v2.PlanRemoved)
