"""Facts of a session, from its journal: its config options, its commands, a chosen title, and what the answer
to `session/new` or `session/fork` says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from msgspec import Struct, field

from antiphon.engine.configuration import config_id, find_option
from antiphon.engine.events import Updated
from antiphon.engine.session import Session
from antiphon.live.pending_notifications import MOST
from antiphon.schema import v2
from antiphon.schema.version import META_KEY

CHOSEN = {META_KEY: {"titleChosen": True}}
"""Marks a title that a client chose: the agent's own do not replace it (SESS-57)."""
TITLE_LIMIT = 1000
"""Characters of a title, which every list of sessions has."""


def options_of(fold: Session) -> list[v2.SessionConfigOption]:
    """Return the current config options of a session."""
    return [] if fold.facts.config is None else list(fold.facts.config.latest.config_options)


def chosen_title(title: str) -> Updated:
    """Return the event that sets the title that a client chose."""
    return Updated.of(v2.SessionInfoUpdate(title=title, meta=CHOSEN))


def is_title_chosen(fold: Session) -> bool:
    info = fold.facts.info
    return info is not None and info.meta.get(META_KEY) == CHOSEN[META_KEY]


class ConfigValues(Mapping[str, Any]):
    """The values that a session's options have now, by the ids of the options."""

    def __init__(self, fold: Session) -> None:
        self._fold = fold

    def __getitem__(self, id: str) -> Any:
        option = find_option(options_of(self._fold), id)
        if option is None:
            raise KeyError(id)
        return option.get("currentValue") if isinstance(option, dict) else option.current_value

    def __iter__(self) -> Iterator[str]:
        ids = map(config_id, options_of(self._fold))
        return iter([id for id in ids if id is not None])

    def __len__(self) -> int:
        return len(options_of(self._fold))

    def __repr__(self) -> str:
        return f"ConfigValues({dict(self)})"


class SessionStart(Struct, frozen=True):
    """Where the client that begins a session starts to follow it. Everything after `seq` is sent to it: an
    agent may speak before that client is attached."""

    seq: int
    config_options: Sequence[v2.SessionConfigOption]
    commands: Sequence[v2.AvailableCommand]
    notes: list[tuple[int, str, Any]] = field(default_factory=list)
    """The extension notifications that came since: the event that each follows, its method and params."""
    followed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a client follows the session."""

    @classmethod
    def of(cls, fold: Session) -> Self:
        """The session as it is now is what the answer says."""
        return cls(fold.last_seq, options_of(fold), fold.facts.available_commands)

    def note(self, seq: int, method: str, params: Any) -> None:
        if len(self.notes) < MOST:
            self.notes.append((seq, method, params))
