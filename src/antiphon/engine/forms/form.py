"""Forms: the fields that an elicitation asks for, and whether an answer fits (ELIC-05, -09, -17).

Both sides check an answer with this: the client before it sends it, the agent when it receives it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from antiphon.engine.forms.patterns import TooCostly, Unsupported, pattern
from antiphon.schema.v2 import elicitation as e
from antiphon.schema.wire import Unknown

LONGEST_TEXT = 100_000
"""How long a text may be if its field sets no limit."""


class Option(Struct, frozen=True):
    """One of the values that can be chosen."""

    value: str
    title: str
    description: str | None = None


class _Field(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    """The title, or else the name."""
    description: str | None = None
    required: bool = False
    default: Any = None
    """The initial value."""

    def read(self, value: Any) -> Any:
        """Return the value to keep. Raises `Unfit`."""
        raise NotImplementedError


class Unfit(Exception):
    """A value that does not fit its field. The message says why, without the value."""


class Unchecked(Unfit):
    """A text that takes too long to be checked against its pattern; the agent that asked for it decides."""


class TextField(_Field, frozen=True, kw_only=True):
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: e.StringFormat | None = None
    """`email`, `uri`, `date`, `date-time`. Any other format is a hint that is not checked (ELIC-19)."""

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise Unfit("is no text")
        if self.min_length is not None and len(value) < self.min_length:
            raise Unfit(f"has fewer than {self.min_length} characters")
        if len(value) > (LONGEST_TEXT if self.max_length is None else self.max_length):
            raise Unfit(f"has more than {self.max_length or LONGEST_TEXT} characters")
        if self.format is not None and not _has_format(value, self.format):
            raise Unfit(f"is no {self.format}")
        if self.pattern is not None and not self._matches(value, self.pattern):
            raise Unfit("does not have the form that is asked for")
        return value

    def _matches(self, value: str, source: str) -> bool:
        try:
            return pattern(source).found_in(value)
        except Unsupported:
            return True  # the author of the pattern checks it too
        except TooCostly:
            raise Unchecked("is too long to be checked") from None


class NumberField(_Field, frozen=True, kw_only=True):
    minimum: float | None = None
    maximum: float | None = None

    def read(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise Unfit("is no number")
        _check_range(value, self.minimum, self.maximum)
        return value


class IntegerField(_Field, frozen=True, kw_only=True):
    minimum: int | None = None
    maximum: int | None = None

    def read(self, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 3.0 is an integer in JSON
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unfit("is no integer")
        _check_range(value, self.minimum, self.maximum)
        return value


class BooleanField(_Field, frozen=True, kw_only=True):
    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise Unfit("is neither true nor false")
        return value


class ChoiceField(_Field, frozen=True, kw_only=True):
    """One of several."""

    options: tuple[Option, ...]

    def read(self, value: Any) -> str:
        return _chosen(value, self.options)


class ChoicesField(_Field, frozen=True, kw_only=True):
    """Any number of several."""

    options: tuple[Option, ...]
    min_items: int | None = None
    max_items: int | None = None

    def read(self, value: Any) -> list[str]:
        if not isinstance(value, list | tuple | set | frozenset):
            raise Unfit("is no list")
        if self.min_items is not None and len(value) < self.min_items:
            raise Unfit(f"has fewer than {self.min_items} entries")
        if self.max_items is not None and len(value) > self.max_items:
            raise Unfit(f"has more than {self.max_items} entries")
        return [_chosen(one, self.options) for one in value]


class UnknownField(_Field, frozen=True, kw_only=True):
    """A field of an unknown type, with its schema in `raw`. Never show it as another type (ELIC-09)."""

    raw: dict[str, Any]

    def read(self, value: Any) -> Any:
        return value


Field: TypeAlias = (
    TextField | NumberField | IntegerField | BooleanField | ChoiceField | ChoicesField | UnknownField
)


class Filled(NamedTuple):
    """The values of an answer to a form, and its problems by field."""

    values: dict[str, Any]
    problems: dict[str, str]


class Form:
    """The fields of a requested schema, in their order."""

    def __init__(self, schema: e.ElicitationSchema) -> None:
        self.title = schema.title
        self.description = schema.description
        required = frozenset(schema.required or ())
        self.fields: tuple[Field, ...] = tuple(
            _field(name, property, required=name in required) for name, property in schema.properties.items()
        )

    @property
    def defaults(self) -> dict[str, Any]:
        """The initial values."""
        return {field.name: field.default for field in self.fields if field.default is not None}

    def read(self, content: Mapping[str, Any], *, accept_unchecked: bool = False) -> Filled:
        """Read the values of the form's fields; skip others.

        accept_unchecked: keep what cannot be checked in bounded time; the agent checks what a client sends,
        too
        """
        values: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for field in self.fields:
            value = content.get(field.name)
            if value is None:
                if field.required:
                    problems[field.name] = "is missing"
                continue
            try:
                values[field.name] = field.read(value)
            except Unchecked as problem:
                if accept_unchecked:
                    values[field.name] = value
                else:
                    problems[field.name] = str(problem)
            except Unfit as problem:
                problems[field.name] = str(problem)
        return Filled(values, problems)


def _field(name: str, property: e.ElicitationPropertySchema, *, required: bool) -> Field:
    if isinstance(property, Unknown):
        title, about = property.get("title"), property.get("description")
        return UnknownField(
            name=name,
            title=title if isinstance(title, str) else name,
            description=about if isinstance(about, str) else None,
            required=required,
            raw=property,
        )
    common: dict[str, Any] = {
        "name": name,
        "title": property.title or name,
        "description": property.description,
        "required": required,
        "default": property.default,
    }
    match property:
        case e.StringPropertySchema(one_of=None, enum=None):
            return TextField(
                **common,
                min_length=property.min_length,
                max_length=property.max_length,
                pattern=property.pattern,
                format=property.format,
            )
        case e.StringPropertySchema():
            return ChoiceField(**common, options=_options(property.one_of or property.enum or ()))
        case e.NumberPropertySchema():
            return NumberField(**common, minimum=property.minimum, maximum=property.maximum)
        case e.IntegerPropertySchema():
            return IntegerField(**common, minimum=property.minimum, maximum=property.maximum)
        case e.BooleanPropertySchema():
            return BooleanField(**common)
    items = property.items
    if isinstance(items, Unknown):
        return UnknownField(**common, raw={"type": "array", "items": items})
    named = items.enum if isinstance(items, e.StringMultiSelectItems) else items.any_of
    return ChoicesField(
        **common, options=_options(named), min_items=property.min_items, max_items=property.max_items
    )


def _options(named: Sequence[str | e.EnumOption]) -> tuple[Option, ...]:
    return tuple(
        Option(one, one) if isinstance(one, str) else Option(one.const, one.title, one.description)
        for one in named
    )


def _chosen(value: Any, options: tuple[Option, ...]) -> str:
    if not isinstance(value, str) or all(option.value != value for option in options):
        raise Unfit("is not among what can be chosen")
    return value


def _check_range(value: float, minimum: float | None, maximum: float | None) -> None:
    if minimum is not None and value < minimum:
        raise Unfit(f"is less than {minimum}")
    if maximum is not None and value > maximum:
        raise Unfit(f"is more than {maximum}")


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(r"[0-9-]{10}[Tt ][0-9:]{8}([.][0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})")


def _has_format(value: str, format: e.StringFormat) -> bool:
    try:
        match format:
            case e.StringFormat.EMAIL:
                name, at, host = value.rpartition("@")
                return bool(name and at and host) and not re.search(r"\s", value)
            case e.StringFormat.URI:
                return bool(urlsplit(value).scheme) and not re.search(r"\s", value)
            case e.StringFormat.DATE:
                return bool(_DATE.fullmatch(value)) and bool(date.fromisoformat(value))
            case e.StringFormat.DATE_TIME:
                whole = _DATE_TIME.fullmatch(value)
                return bool(whole) and bool(datetime.fromisoformat(f"{value[:10]}T{value[11:19]}"))
    except ValueError:
        return False
    return True
