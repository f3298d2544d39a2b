"""What the record of a session says about its agent."""

from __future__ import annotations

from msgspec import structs

from antiphon.stores.base import SessionRecord

HUB = "hub"
"""The key in the `meta` of a session's record that says which agent it has, and which sessions there."""


def imported_record(record: SessionRecord, *, agent: str | None = None, copy: bool = False) -> SessionRecord:
    """Return the record of an imported session.

    The agent loads the session if it knows it; otherwise it gets the conversation as text. A copy, or
    a session with another agent, never uses the agent's session of the original.
    """
    kept = record.meta.get(HUB)
    upstream = dict(kept) if isinstance(kept, dict) else {}
    if copy or (agent is not None and agent != upstream.get("agent")):
        upstream["sessions"] = []
    if agent is not None:
        upstream["agent"] = agent
    return structs.replace(record, meta={**record.meta, HUB: upstream}) if upstream else record


def recorded_agent(record: SessionRecord) -> str | None:
    """Return the name of the agent of a session, if its record has one."""
    kept = record.meta.get(HUB)
    name = kept.get("agent") if isinstance(kept, dict) else None
    return name if isinstance(name, str) else None
