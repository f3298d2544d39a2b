"""The values that config options offer, and lists of options with one value changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from antiphon.schema import v2

Value = str | bool
"""The value of an option: the id of an offered value, or a boolean."""


def config_id(option: v2.SessionConfigOption) -> str | None:
    """Return the id of an option; one of an unknown type has an id too (CONF-V2-05)."""
    found = option.get("configId") if isinstance(option, dict) else option.config_id
    return found if isinstance(found, str) else None


def find_option(options: Iterable[v2.SessionConfigOption], id: str) -> v2.SessionConfigOption | None:
    return next((option for option in options if config_id(option) == id), None)


def offered_values(option: v2.SessionConfigSelect) -> list[v2.SessionConfigSelectOption]:
    """Return all values of a select, without their groups."""
    return [
        value
        for entry in option.options
        for value in (entry.options if isinstance(entry, v2.SessionConfigSelectGroup) else (entry,))
    ]


def takes(option: v2.SessionConfigOption, value: object) -> bool:
    """Whether an option can have this value. An option of an unknown type can have none."""
    if isinstance(option, v2.SessionConfigBoolean):
        return isinstance(value, bool)
    if isinstance(option, v2.SessionConfigSelect):
        return any(value == offered.value for offered in offered_values(option))
    return False


def with_value(option: v2.SessionConfigOption, value: Value) -> v2.SessionConfigOption:
    if isinstance(option, v2.SessionConfigBoolean):
        return replace(option, current_value=bool(value))
    if isinstance(option, v2.SessionConfigSelect):
        return replace(option, current_value=v2.SessionConfigValueId(str(value)))
    return option


def set_value(
    options: Sequence[v2.SessionConfigOption], id: v2.SessionConfigId | str, value: Value
) -> list[v2.SessionConfigOption]:
    """Return the complete list, with one option set (CONF-01)."""
    chosen = find_option(options, id)
    return [with_value(option, value) if option is chosen else option for option in options]


def fault(options: Sequence[v2.SessionConfigOption]) -> str | None:
    """Return what is wrong with a list of options that an agent offers; `None` if it is valid
    (CONF-V2-04)."""
    ids = [config_id(option) for option in options]
    if not all(ids) or len(set(ids)) != len(ids):
        return "each config option needs an id of its own"
    for option in options:
        if isinstance(option, v2.SessionConfigSelect):
            wrong = _select_fault(option)
            if wrong is not None:
                return f"config option {option.config_id!r}: {wrong}"
        elif isinstance(option, v2.SessionConfigBoolean) and not isinstance(option.current_value, bool):
            return f"config option {option.config_id!r}: its value is True or False"
    return None


def _select_fault(option: v2.SessionConfigSelect) -> str | None:
    grouped = [isinstance(entry, v2.SessionConfigSelectGroup) for entry in option.options]
    if not grouped:
        return "there is nothing to choose from"
    if any(grouped) and not all(grouped):
        return "its values are all in groups, or none is"
    if any(isinstance(entry, v2.SessionConfigSelectGroup) and not entry.options for entry in option.options):
        return "a group is empty"
    values = [value.value for value in offered_values(option)]
    if len(set(values)) != len(values):
        return "a value is offered twice"
    if option.current_value not in values:
        return f"{option.current_value!r} is not among its values"
    return None
