"""Facts of a session, from its journal: its config options, its commands and a title that was chosen."""

from __future__ import annotations

from antiphon.engine.events import Updated
from antiphon.engine.session import Session
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.schema.version import META_KEY

CHOSEN = {META_KEY: {"titleChosen": True}}
"""Marks a title that a client chose: the agent's own do not replace it (SESS-57)."""


def options_of(fold: Session) -> list[v2.SessionConfigOption]:
    """Return the current config options of a session."""
    return [] if fold.facts.config is None else list(fold.facts.config.latest.config_options)


def commands_of(fold: Session) -> list[v2.AvailableCommand]:
    """Return the commands that a session offers now."""
    return [] if fold.facts.commands is None else list(fold.facts.commands.latest.available_commands)


async def choose_title(live: LiveSession, title: str) -> None:
    """Set the title that a client chose; it is in the store when this returns."""
    live.emit([Updated.of(v2.SessionInfoUpdate(title=title, meta=CHOSEN))])
    await live.durable()


def is_title_chosen(fold: Session) -> bool:
    info = fold.facts.info
    return info is not None and info.meta.get(META_KEY) == CHOSEN[META_KEY]
