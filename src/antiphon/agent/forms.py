"""Forms: a struct or a schema as a form, and what an agent may ask with it (ELIC-05).

A mistake is reported to the author at the call that makes it, and nothing is sent.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import NODEFAULT, Struct, inspect

from antiphon.engine.forms.form import Form
from antiphon.engine.forms.patterns import Unsupported, pattern
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.repair import Malformed, repair
from antiphon.schema.wire import Unknown
from antiphon.server.checks import check_value

S = TypeVar("S", bound=Struct)

_SEQUENCES = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)


class StructForm(Generic[S]):
    """What a struct asks for, and how an answer becomes one. Raises `LocalError` for a struct that is no flat
    form."""

    def __init__(self, struct: type[S]) -> None:
        self._struct = struct
        info = inspect.type_info(struct)
        assert isinstance(info, inspect.StructType)
        self._fields = info.fields
        self._hints = get_type_hints(struct, include_extras=True)
        properties = {}
        for field in info.fields:
            try:
                properties[field.encode_name] = _property(field, self._hints[field.name])
            except LocalError as error:
                raise LocalError(f"{struct.__name__}.{field.name}: {error.detail}") from None
        self.schema = v2.ElicitationSchema(
            type=v2.ElicitationSchemaType.OBJECT,
            properties=properties,
            required=[field.encode_name for field in info.fields if field.required] or None,
        )

    def read(self, values: dict[str, Any]) -> S:
        """An instance, of values that were checked against the schema. Raises `ValueError` where the struct
        refuses them all the same."""
        try:
            given = {
                field.name: self._value(field, values[field.encode_name])
                for field in self._fields
                if field.encode_name in values
            }
            return self._struct(**given)
        except (msgspec.ValidationError, TypeError) as error:
            raise ValueError(str(error)) from None

    def _value(self, field: inspect.Field, value: Any) -> Any:
        if isinstance(_plain(field)[0], inspect.StrType):
            return value  # ELIC-18: msgspec would match its pattern without a bound
        return msgspec.convert(value, self._hints[field.name])


@lru_cache(maxsize=256)
def struct_form(struct: type[S]) -> StructForm[S]:
    return StructForm(struct)


def _plain(field: inspect.Field) -> tuple[inspect.Type, dict[str, Any]]:
    """Return the type of a field without its annotations, and its annotations."""
    type = field.type
    said: dict[str, Any] = {}
    while True:
        if isinstance(type, inspect.Metadata):
            said = {**(type.extra_json_schema or {}), **said}
            type = type.type
        elif isinstance(type, inspect.UnionType):
            rest = [one for one in type.types if not isinstance(one, inspect.NoneType)]
            if len(rest) != 1:
                raise LocalError("a field of a form has one type")
            if field.required:
                raise LocalError("a field that may be None needs a default")
            type = rest[0]
        else:
            return type, said


def _property(field: inspect.Field, hint: Any) -> v2.ElicitationPropertySchema:
    type, said = _plain(field)
    common = {
        "title": said.get("title"),
        "description": said.get("description"),
        "default": _default(field),
    }
    match type:
        case inspect.StrType():
            format = said.get("format")
            return v2.StringPropertySchema(
                **common,
                min_length=type.min_length,
                max_length=type.max_length,
                pattern=type.pattern,
                format=None if format is None else v2.StringFormat(format),
            )
        case inspect.DateType():
            return v2.StringPropertySchema(**common, format=v2.StringFormat.DATE)
        case inspect.DateTimeType():
            return v2.StringPropertySchema(**common, format=v2.StringFormat.DATE_TIME)
        case inspect.BoolType():
            return v2.BooleanPropertySchema(**common)
        case inspect.IntType():
            _check_bounds(type)
            return v2.IntegerPropertySchema(
                **common,
                minimum=type.ge if type.gt is None else type.gt + 1,
                maximum=type.le if type.lt is None else type.lt - 1,
            )
        case inspect.FloatType():
            _check_bounds(type)
            if type.gt is not None or type.lt is not None:
                raise LocalError("a form knows `ge` and `le`, not `gt` and `lt`")
            return v2.NumberPropertySchema(**common, minimum=type.ge, maximum=type.le)
        case inspect.LiteralType() | inspect.EnumType():
            values, options = _choices(type, hint)
            return v2.StringPropertySchema(**common, enum=values, one_of=options)
    if isinstance(type, _SEQUENCES):
        item = type.item_type
        if isinstance(item, inspect.LiteralType | inspect.EnumType):
            return v2.MultiSelectPropertySchema(
                **common,
                items=_items(item, hint),
                min_items=type.min_length or None,
                max_items=type.max_length,
            )
    raise LocalError("a form has texts, numbers, yes or no, and choices; nothing nested")


def _check_bounds(type: inspect.IntType | inspect.FloatType) -> None:
    if type.multiple_of is not None:
        raise LocalError("a form does not know `multiple_of`")


def _choices(
    type: inspect.LiteralType | inspect.EnumType, hint: Any
) -> tuple[list[str] | None, list[v2.EnumOption] | None]:
    """Return the values to choose from, or those of an enum with the names of its members."""
    members: list[enum.Enum] = [] if isinstance(type, inspect.LiteralType) else list(type.cls)
    values: list[Any] = [member.value for member in members] or _written(hint)  # msgspec has sorted literals
    if not values or not all(isinstance(value, str) for value in values):
        raise LocalError("what can be chosen is text")
    if not members:
        return values, None
    titles = [member.name.replace("_", " ").capitalize() for member in members]
    return None, [
        v2.EnumOption(const=value, title=title) for value, title in zip(values, titles, strict=True)
    ]


def _written(hint: Any) -> list[Any]:
    """The values of the literal in a type, in their order."""
    if get_origin(hint) is Literal:
        return [one for value in get_args(hint) for one in (_written(value) or [value])]
    return [one for inner in get_args(hint) for one in _written(inner)]


def _items(type: inspect.LiteralType | inspect.EnumType, hint: Any) -> v2.MultiSelectItems:
    values, options = _choices(type, hint)
    if values is not None:
        return v2.StringMultiSelectItems(enum=values)
    return v2.TitledMultiSelectItems(any_of=options or [])  # ELIC-21: `anyOf`, and no `type`


def _default(field: inspect.Field) -> Any:
    default = field.default
    if field.default_factory is not NODEFAULT:
        default = field.default_factory()
    if default is NODEFAULT or default is None:
        return None
    value = msgspec.to_builtins(default)
    return sorted(value) if isinstance(default, set | frozenset) else value


SECRET = re.compile(
    r"(?:.*[_ .-])?(?:password|passwd|passphrase|passcode|secret|credentials?|private[_ .-]?key"
    r"|api[_ .-]?key|(?:access|auth|refresh|id|bearer)[_ .-]?token)"
)
"""How fields and parameters are called that hold a secret: by their last words."""
SECRET_FORMATS = ("password", "_password", "secret", "_secret")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def check_schema(schema: v2.ElicitationSchema | Mapping[str, Any]) -> v2.ElicitationSchema:
    """A schema that can be asked. Raises `LocalError`."""
    if not isinstance(schema, v2.ElicitationSchema):
        try:
            schema = repair(2).build(v2.ElicitationSchema, dict(schema))
        except Malformed as error:
            raise LocalError(f"not a schema that can be asked: {error}") from None
    assert isinstance(schema, v2.ElicitationSchema)
    for name in schema.required or ():
        if name not in schema.properties:
            raise LocalError(f"{name!r} is required and is no property")
    for name, property in schema.properties.items():
        try:
            _check_property(name, property)
        except LocalError as error:
            raise LocalError(f"{name!r}: {error.detail}") from None
    form = Form(schema)
    found = form.read(form.defaults).problems
    problems = [f"the default of {name!r} {found[name]}" for name in found if name in form.defaults]
    if problems:
        raise LocalError("; ".join(problems))
    return schema


def _check_property(name: str, property: v2.ElicitationPropertySchema) -> None:
    if isinstance(property, Unknown):
        if not str(property.get("type")).startswith("_"):  # ELIC-05, EXT-06
            raise LocalError("a form is flat, of strings, numbers, integers, booleans and arrays of choices")
        return
    if isinstance(property, v2.MultiSelectPropertySchema):
        items = property.items
        if isinstance(items, Unknown):
            if not str(items.get("type")).startswith("_"):
                raise LocalError("an array is one of choices")
            return
        _check_choices(items.enum if isinstance(items, v2.StringMultiSelectItems) else items.any_of)
        return
    if not isinstance(property, v2.StringPropertySchema):
        return
    for choices in (property.enum, property.one_of):
        if choices is not None:
            _check_choices(choices)
            return
    if property.format in SECRET_FORMATS or is_secret(name):
        raise LocalError("a secret is not asked for with a form: use `ask_url`")  # ELIC-13
    check_value(property.format)
    if property.pattern is not None:
        try:
            pattern(property.pattern)
        except Unsupported as error:  # ELIC-18: an answer could not be checked
            raise LocalError(f"its pattern cannot be used: {error}") from None


def _check_choices(choices: list[str] | list[v2.EnumOption]) -> None:
    if not choices:
        raise LocalError("there is nothing to choose from")  # ELIC-21


def is_secret(name: str) -> bool:
    return SECRET.fullmatch(_HUMP.sub("_", name).lower()) is not None


def check_url(url: str) -> None:
    """Raises `LocalError` for an address that cannot be visited, or that holds credentials (ELIC-16)."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise LocalError("not an address that can be visited") from None
    if parts.scheme not in ("https", "http") or not host or re.search(r"[\s\x00-\x1f]", url):
        raise LocalError("not an address that can be visited: it begins with https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise LocalError("an address must not hold a user name or password: every reader could log in")
    for name, _ in (*parse_qsl(parts.query), *parse_qsl(parts.fragment)):
        if is_secret(name):
            raise LocalError(f"an address holds no credentials, and {name!r} names one")
