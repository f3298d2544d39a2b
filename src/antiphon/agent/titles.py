"""Titles that a client chose: they are kept, and the agent's own do not replace them (SESS-57)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.engine.events import Updated
from antiphon.engine.session import Session
from antiphon.schema import v2
from antiphon.schema.version import META_KEY

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession

CHOSEN = {META_KEY: {"titleChosen": True}}


async def choose_title(session: AgentSession, title: str) -> None:
    """It is in the store when this returns."""
    session.emit([Updated.of(v2.SessionInfoUpdate(title=title, meta=CHOSEN))])
    await session.live.durable()


def is_title_chosen(fold: Session) -> bool:
    info = fold.facts.info
    return info is not None and info.meta.get(META_KEY) == CHOSEN[META_KEY]
