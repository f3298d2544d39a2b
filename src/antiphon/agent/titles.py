"""Titles that a client chose: they are kept, and the agent's own do not replace them (SESS-57)."""

from __future__ import annotations

from antiphon.engine.events import Updated
from antiphon.engine.session import Session
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.schema.version import META_KEY

CHOSEN = {META_KEY: {"titleChosen": True}}


async def choose_title(live: LiveSession, title: str) -> None:
    """It is in the store when this returns."""
    live.emit([Updated.of(v2.SessionInfoUpdate(title=title, meta=CHOSEN))])
    await live.durable()


def is_title_chosen(fold: Session) -> bool:
    info = fold.facts.info
    return info is not None and info.meta.get(META_KEY) == CHOSEN[META_KEY]
