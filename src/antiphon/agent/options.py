"""Config options as an agent declares them: what there is to choose, what is chosen at first, and who decides
when a client wants another value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from antiphon.agent.session import AgentSession
from antiphon.engine.configuration import fault, offered_values, takes, with_value
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.server.checks import check_value

Choices: TypeAlias = (
    Mapping[str, str]
    | Mapping[str, Mapping[str, str]]
    | Sequence[v2.SessionConfigSelectOption]
    | Sequence[v2.SessionConfigSelectGroup]
)
"""Values and their names, `{"fast": "Fast"}`; in groups, `{"Small": {"fast": "Fast"}}`; or, where they have
descriptions, as the wire has them."""

OptionHandler: TypeAlias = Callable[[AgentSession, Any], Awaitable[None]]
H = TypeVar("H", bound=OptionHandler)


class Option:
    """What `agent.config(...)` gives. Decorate with it the handler that is asked about changes."""

    def __init__(
        self,
        id: str,
        *,
        name: str | None,
        options: Choices | None,
        default: str | bool | None,
        category: str | None,
        description: str | None,
    ) -> None:
        """Raises `LocalError` for what could not be offered (CONF-V2-04, CONF-02)."""
        self.id = id
        self.handler: OptionHandler | None = None
        self.shown: v2.SessionConfigOption
        """The option with its default."""
        kind = None if category is None else v2.SessionConfigOptionCategory(category)
        check_value(kind)
        common: dict[str, Any] = {
            "config_id": v2.SessionConfigId(id),
            "name": name or id,
            "description": description,
            "category": kind,
        }
        if options is None:
            if not isinstance(default, bool):
                raise LocalError(
                    f"config option {id!r}: without values to choose from, its default is a bool"
                )
            self.shown = v2.SessionConfigBoolean(**common, current_value=default)
        else:
            first = v2.SessionConfigValueId("" if default is None else str(default))
            self.shown = v2.SessionConfigSelect(**common, current_value=first, options=_entries(options))
            values = offered_values(self.shown)
            if default is None and values:  # CONF-02: what is offered first is the default
                self.shown = with_value(self.shown, values[0].value)
        wrong = fault([self.shown])
        if wrong is not None:
            raise LocalError(wrong)

    def __call__(self, handler: H) -> H:
        if self.handler is not None:
            raise LocalError(f"the config option {self.id!r} has one handler")
        self.handler = handler
        return handler

    def restored(self, before: v2.SessionConfigOption | None) -> v2.SessionConfigOption:
        """The option with the value a session has, where it is still offered."""
        if before is None or isinstance(before, dict) or not takes(self.shown, before.current_value):
            return self.shown
        return with_value(self.shown, before.current_value)


def _entries(options: Choices) -> v2.SessionConfigSelectOptions:
    if not isinstance(options, Mapping):
        return _as_given(options)
    entries: list[Any] = []
    for key, entry in options.items():
        if isinstance(entry, Mapping):
            entries.append(
                v2.SessionConfigSelectGroup(
                    group_id=v2.SessionConfigGroupId(key), name=key, options=_values(entry)
                )
            )
        else:
            entries += _values({key: entry})
    return entries


def _as_given(options: Sequence[Any]) -> v2.SessionConfigSelectOptions:
    for kind in (v2.SessionConfigSelectOption, v2.SessionConfigSelectGroup):
        if all(isinstance(option, kind) for option in options):
            return list(options)
    raise LocalError(
        "what can be chosen is `{value: name}`, `{group: {value: name}}`, or a list of the schema's options"
    )


def _values(names: Mapping[str, str]) -> list[v2.SessionConfigSelectOption]:
    if not all(isinstance(word, str) for pair in names.items() for word in pair):
        raise LocalError("the values of a config option and their names are text")
    return [
        v2.SessionConfigSelectOption(value=v2.SessionConfigValueId(value), name=name)
        for value, name in names.items()
    ]
