"""ConfigValues: the current values of a session's config options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from antiphon.engine.configuration import config_id, find_option
from antiphon.engine.session import Session
from antiphon.server.session_facts import options_of


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
