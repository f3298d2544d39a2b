"""Settling: where a session that comes from elsewhere has its agent here."""

from __future__ import annotations

from msgspec import structs

from antiphon.hub.sessions import HUB
from antiphon.stores.base import SessionRecord


def settled(record: SessionRecord, *, agent: str | None = None, copy: bool = False) -> SessionRecord:
    """The record of an imported session. It is brought back at its agent where that knows it, or is told what
    was said. A copy never stands on its original's session there, nor does one with another agent."""
    kept = record.meta.get(HUB)
    standing = dict(kept) if isinstance(kept, dict) else {}
    if copy or (agent is not None and agent != standing.get("agent")):
        standing["sessions"] = []
    if agent is not None:
        standing["agent"] = agent
    return structs.replace(record, meta={**record.meta, HUB: standing}) if standing else record


def agent_of(record: SessionRecord) -> str | None:
    """The name of the agent that works for a session, where its record says so."""
    kept = record.meta.get(HUB)
    name = kept.get("agent") if isinstance(kept, dict) else None
    return name if isinstance(name, str) else None
