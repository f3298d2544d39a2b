"""Facts: the commands, config options, info and usage of a session, of which there is one each."""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import UNSET

from antiphon.engine.content import patch_meta
from antiphon.schema.v2.commands import AvailableCommandsUpdate
from antiphon.schema.v2.config_options import ConfigOptionUpdate
from antiphon.schema.v2.session_list import SessionInfoUpdate
from antiphon.schema.v2.usage import Cost, UsageUpdate

Listing = TypeVar("Listing", AvailableCommandsUpdate, ConfigOptionUpdate)


class Latest(Generic[Listing]):
    """A list that each update replaces whole (CMD-01, CONF-01)."""

    __slots__ = ("key", "latest", "position")

    latest: Listing

    def __init__(self, key: str, *, position: int) -> None:
        self.key = key
        self.position = position

    def patch(self, update: Listing) -> None:
        self.latest = update

    def materialize(self) -> Listing:
        return self.latest


class Info:
    """Title and time of the last activity: absent keeps, null clears (INFO-01)."""

    __slots__ = ("key", "meta", "position", "title", "updated_at")

    def __init__(self, *, position: int) -> None:
        self.key = "facts/info"
        self.position = position
        self.title: str | None = None
        self.updated_at: str | None = None
        self.meta: dict[str, Any] = {}

    def patch(self, update: SessionInfoUpdate) -> None:
        if update.title is not UNSET:
            self.title = update.title
        if update.updated_at is not UNSET:
            self.updated_at = update.updated_at
        self.meta = patch_meta(self.meta, update.meta)

    def materialize(self) -> SessionInfoUpdate:
        return SessionInfoUpdate(title=self.title, updated_at=self.updated_at, meta=self.meta or None)


class ContextUsage:
    """The context window and the session's cost so far."""

    __slots__ = ("cost", "key", "meta", "position", "size", "used")

    def __init__(self, *, position: int) -> None:
        self.key = "facts/usage"
        self.position = position
        self.used = 0
        self.size = 0
        self.cost: Cost | None = None
        self.meta: dict[str, Any] | None = None

    def patch(self, update: UsageUpdate) -> None:
        self.used = update.used
        self.size = update.size
        if update.cost is not UNSET:  # USAGE-04
            self.cost = update.cost
        self.meta = update.meta

    def materialize(self) -> UsageUpdate:
        return UsageUpdate(used=self.used, size=self.size, cost=self.cost, meta=self.meta)


Fact: TypeAlias = "Latest[AvailableCommandsUpdate] | Latest[ConfigOptionUpdate] | Info | ContextUsage"


class Facts:
    __slots__ = ("commands", "config", "info", "usage")

    def __init__(self) -> None:
        self.commands: Latest[AvailableCommandsUpdate] | None = None
        self.config: Latest[ConfigOptionUpdate] | None = None
        self.info: Info | None = None
        self.usage: ContextUsage | None = None

    def set_commands(self, update: AvailableCommandsUpdate, *, position: int) -> Fact:
        self.commands = self.commands or Latest("facts/commands", position=position)
        self.commands.patch(update)
        return self.commands

    def set_config(self, update: ConfigOptionUpdate, *, position: int) -> Fact:
        self.config = self.config or Latest("facts/config", position=position)
        self.config.patch(update)
        return self.config

    def patch_info(self, update: SessionInfoUpdate, *, position: int) -> Fact:
        self.info = self.info or Info(position=position)
        self.info.patch(update)
        return self.info

    def patch_usage(self, update: UsageUpdate, *, position: int) -> Fact:
        self.usage = self.usage or ContextUsage(position=position)
        self.usage.patch(update)
        return self.usage
