"""What an agent tells of a session beside its turns: the values of its options, its commands, its title and
usage, notices and compactions."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec import UNSET, UnsetType

from antiphon.agent.compacting import CompactionWriter
from antiphon.agent.declaring import OWN_LIST, Declaring, options_of
from antiphon.agent.titles import is_title_chosen
from antiphon.engine.configuration import Value, config_id, find_option, set_value, takes
from antiphon.engine.session import Session
from antiphon.errors import LocalError
from antiphon.schema import v2


class ConfigValues(Mapping[str, Any]):
    """The values that a session's options have now, by the ids of the options."""

    def __init__(self, session: Telling) -> None:
        self._session = session

    def __getitem__(self, id: str) -> Any:
        option = find_option(options_of(self._session.fold), id)
        if option is None:
            raise KeyError(id)
        return option.get("currentValue") if isinstance(option, dict) else option.current_value

    def __iter__(self) -> Iterator[str]:
        ids = map(config_id, options_of(self._session.fold))
        return iter([id for id in ids if id is not None])

    def __len__(self) -> int:
        return len(options_of(self._session.fold))

    def __repr__(self) -> str:
        return f"ConfigValues({dict(self)})"


class Telling(ABC):
    def __init__(self, declared: Declaring | None) -> None:
        self.declared = declared or Declaring()
        """What the agent offers in every session."""
        self.configuring = asyncio.Lock()
        """Held while a client's wish for another value is dealt with."""

    @property
    @abstractmethod
    def fold(self) -> Session:
        """Everything this session holds."""

    @abstractmethod
    async def update(self, update: v2.SessionUpdate) -> None:
        """Say something to everyone who follows the session, now and later."""

    # --- options and commands ----------------------------------------------------------------------

    @property
    def config(self) -> ConfigValues:
        """The values of the config options: `session.config["model"]`."""
        return ConfigValues(self)

    async def set_config(self, id: str, value: Value) -> None:
        """Change an option from the agent's side; whoever follows gets the complete list. No handler is
        asked: those are for what clients want."""
        options = options_of(self.fold)
        option = find_option(options, id)
        if option is None:
            raise LocalError(f"this session has no config option {id!r}")
        if not takes(option, value):
            raise LocalError(f"the config option {id!r} does not take {value!r}")
        if self.config[id] != value:
            await self.update(v2.ConfigOptionUpdate(config_options=set_value(options, id, value)))

    async def set_commands(self, commands: Sequence[str | v2.AvailableCommand]) -> None:
        """Offer these commands in this session, and no others: declared ones by name, or new ones, which
        reach the prompt handler as the text they are. They are still offered after a restart."""
        offered = [
            self.declared.declared_command(command) if isinstance(command, str) else command
            for command in commands
        ]
        await self.update(v2.AvailableCommandsUpdate(available_commands=offered, meta=OWN_LIST))

    # --- title and usage ---------------------------------------------------------------------------

    async def set_title(self, title: str | None) -> bool:
        """Give the session a title; whether it has it now: one that a client chose stays (SESS-57)."""
        if is_title_chosen(self.fold):
            return False
        await self.update(v2.SessionInfoUpdate(title=title))
        return True

    async def report_usage(
        self,
        *,
        used: int,
        size: int | None,
        cost: float | v2.Cost | UnsetType | None = UNSET,
        currency: str = "USD",
    ) -> None:
        """How many tokens of the context window are in use, and what the session has cost so far in all.

        A cost that is not given stays, None clears it. Without a size worth telling nothing is told.
        """
        if used < 0 or (size is not None and size < 0):
            raise LocalError("tokens are counted from 0")
        if not size:
            return  # USAGE-02
        told = v2.Cost(amount=cost, currency=currency) if isinstance(cost, int | float) else cost
        before = self.fold.facts.usage
        if (
            isinstance(told, v2.Cost)
            and before is not None
            and before.cost is not None
            and before.cost.currency == told.currency
            and told.amount < before.cost.amount
        ):
            raise LocalError("the cost is the session's so far in all, and never gets less")  # USAGE-03
        await self.update(v2.UsageUpdate(used=used, size=size, cost=told))

    # --- notices and compactions -------------------------------------------------------------------

    async def notice(self, title: str, *, description: str | None = None, severity: str = "info") -> None:
        """Tell whoever follows right now: `info`, `warning`, `error`, or a severity of your own that begins
        with `_`. Nobody may see it, it changes nothing, and it is not replayed (NOTE-04, NOTE-05)."""
        await self.update(
            v2.Notice(severity=v2.NoticeSeverity(severity), title=title, description=description)
        )

    @asynccontextmanager
    async def compaction(self) -> AsyncIterator[CompactionWriter]:
        """The context is being compacted inside the block, and what is written there is the summary, for
        people to read: completed after it, failed if it raises, cancelled with its task."""
        writer = CompactionWriter(self)
        async with writer.running():
            yield writer
