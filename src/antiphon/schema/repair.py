"""Decodes values that did not decode strictly, as leniently as the schema allows.

One walk by type, driven by the generated tables of a version: a malformed lenient field counts as absent,
malformed items are dropped, `null` is empty, and a variant with an unknown tag of an open union is kept whole
(RPC-40, RPC-41, EXT-07, EXT-08). Everything else is refused, with its path and without its value (RPC-27).
A value that decodes strictly gives the same result here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import EnumType
from functools import cache, partial
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import Struct, UnsetType
from msgspec.structs import FieldInfo

from antiphon.errors import one_line
from antiphon.schema.wire import Choice, ClosedEnum, Forgiving, Lenient, Open, Unknown, Wire, choose


class Quirks(Struct, frozen=True):
    """Spellings of a version that peers also send, because parts of the specification disagree."""

    other_keys: Mapping[str, Mapping[str, str]] = {}
    """By struct: keys that may also have another name."""
    null_is_empty: bool = False
    """Whether `null` means `{}` for a result without required fields."""
    results_without: Mapping[str, tuple[str, str]] = {}
    """By method: a required key that the result may lack, and the type of the result without it."""


QUIRKS = {
    1: Quirks(
        other_keys={"CurrentModeUpdate": {"currentModeId": "modeId"}},  # C-19
        null_is_empty=True,  # C-20
        # With `promptLifecycle`, a prompt is answered at its insertion, with the message's id.
        results_without={"session/prompt": ("stopReason", "optins.PromptAccepted")},
    ),
    2: Quirks(
        results_without={"session/prompt": ("messageId", "proposed.PromptTaken")},  # C-01
    ),
}
"""C-07, a v2 command without `type`, needs no entry: msgspec accepts it, because its union has one member."""

STRICT = Lenient(0)


class Malformed(Exception):
    """A value that does not fit its type. Each caller prepends its step to `path`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = ""

    def under(self, step: str) -> Malformed:
        self.path = step + self.path
        return self

    def __str__(self) -> str:
        return f"{self.reason} - at `${self.path}`" if self.path else self.reason


Build = Callable[[Any], Any]


class Repair:
    """Makes values of one version's types from plain JSON values."""

    def __init__(self, version: int) -> None:
        tables = import_module(f"antiphon.schema.v{version}.leniency")
        self._quirks = QUIRKS[version]
        self._lenient: Mapping[type[Wire], Mapping[str, Lenient]] = tables.LENIENT
        self._open: dict[type[Wire], Open] = {
            member: union for union in tables.OPEN for member in union.members
        }
        self._open_structs: Mapping[type[Wire], str] = tables.OPEN_STRUCTS
        self._builders: dict[Any, Build] = {}

    def build(self, type: Any, value: Any) -> Any:
        """Return `value` as a `type`. Raises `Malformed`."""
        return self._builder(type)(value)

    def _builder(self, type: Any) -> Build:
        found = self._builders.get(type)
        if found is None:
            found = self._builders[type] = self._make(type)
        return found

    def _make(self, type: Any) -> Build:
        plain, least = _unwrapped(type)
        origin, arguments = get_origin(plain), get_args(plain)
        if origin is list:
            return self._list(arguments[0], least)
        if origin is dict:
            return self._dict(arguments[1])
        if origin in (Union, UnionType):
            return self._union(type, arguments)
        if isinstance(plain, Choice):
            return self._choice(plain)
        if is_struct(plain):
            return self._struct(plain)
        if isinstance(plain, EnumType) and issubclass(plain, ClosedEnum):
            return partial(_closed_enum, plain)
        if plain is msgspec.Raw:
            return lambda value: msgspec.Raw(msgspec.json.encode(value))  # decoded later
        return lambda value: _leaf(type, value)

    def _list(self, item: Any, least: int, *, skips: bool = False) -> Build:
        """`skips`: whether malformed items are dropped."""
        build = self._builder(item)

        def build_list(value: Any) -> Any:
            if not isinstance(value, list):
                raise Malformed("Expected an array")
            if len(value) < least:
                raise Malformed(f"Expected an array of at least {least}")
            made = []
            for index, entry in enumerate(value):
                try:
                    made.append(build(entry))
                except Malformed as error:
                    if not skips:
                        raise error.under(f"[{index}]") from None
            return made

        return build_list

    def _dict(self, item: Any) -> Build:
        build = self._builder(item)

        def build_dict(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Malformed("Expected an object")
            try:
                return {key: build(entry) for key, entry in value.items()}
            except Malformed as error:
                raise error.under("[...]") from None

        return build_dict

    def _union(self, type: Any, arguments: tuple[Any, ...]) -> Build:
        members = [member for member in arguments if member not in (NoneType, UnsetType)]
        structs = [member for member in members if is_struct(member)]
        if len(members) == 1:
            inner = self._builder(members[0])
        elif structs == members:
            inner = self._tagged(structs)
        else:
            inner = lambda value: _leaf(type, value)  # noqa: E731
        if NoneType not in arguments:
            return inner
        return lambda value: None if value is None else inner(value)

    def _tagged(self, structs: list[Any]) -> Build:
        tag_field: str = structs[0].__struct_config__.tag_field
        builders = {struct.__struct_config__.tag: self._builder(struct) for struct in structs}
        union = next((self._open[struct] for struct in structs if struct in self._open), None)

        def build_tagged(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Malformed("Expected an object")
            if tag_field not in value:
                raise Malformed(f"Object missing required field `{tag_field}`")
            tag = value[tag_field]
            if not isinstance(tag, str):
                raise Malformed("Expected `str`").under(f".{tag_field}")
            build = builders.get(tag)
            return _unknown(union, tag_field, value) if build is None else build(value)

        return build_tagged

    def _choice(self, choice: Choice) -> Build:
        def build_choice(value: Any) -> Any:
            refusal: Malformed | None = None
            for member in choice.candidates(value):
                if member is Unknown:
                    return Unknown(value)
                try:
                    return self.build(member, value)
                except Malformed as error:
                    refusal = refusal or error
            raise refusal or Malformed(f"Fits no member of {choice.__name__}")

        return build_choice

    def _struct(self, struct: type[Wire]) -> Build:
        config = struct.__struct_config__
        lenient, forgiving = self._marks(struct), issubclass(struct, Forgiving)
        fields = [
            (field, lenient.get(field.name, STRICT), self._field_builder(field, lenient))
            for field in msgspec.structs.fields(struct)
        ]
        others = self._quirks.other_keys.get(struct.__name__, {})
        state = next(
            (self._open_structs[base] for base in struct.__mro__ if base in self._open_structs), None
        )
        states = {str(member) for field, _, _ in fields if field.name == state for member in field.type}

        def build_struct(value: Any) -> Any:
            if not isinstance(value, dict):
                if not forgiving:
                    raise Malformed("Expected an object")
                value = {}
            # As with msgspec, a missing tag is accepted outside a union (C-07).
            if config.tag is not None and value.get(config.tag_field, config.tag) != config.tag:
                return _unknown(self._open.get(struct), str(config.tag_field), value)
            if state is not None and isinstance(value.get(state), str) and value[state] not in states:
                return Unknown(value)
            made = {}
            for field, marks, build in fields:
                key = field.encode_name
                if key not in value and others.get(key) in value:
                    key = others[key]
                if key not in value:
                    if field.required:
                        raise Malformed(f"Object missing required field `{key}`")
                elif value[key] is None and Lenient.NULL in marks:
                    if field.required:
                        made[field.name] = _empty(field)
                else:
                    try:
                        made[field.name] = build(value[key])
                    except Malformed as error:
                        if Lenient.ERROR not in marks:
                            raise error.under(f".{key}") from None
                        if field.required:
                            made[field.name] = _empty(field)
            try:
                return struct(**made)
            except (TypeError, ValueError) as error:
                raise Malformed(str(error)) from None

        return build_struct

    def _marks(self, struct: type[Struct]) -> dict[str, Lenient]:
        marks: dict[str, Lenient] = {"meta": Lenient.ERROR}
        if issubclass(struct, Forgiving):
            for field in msgspec.structs.fields(struct):
                # A malformed required field makes the whole object malformed.
                skips = Lenient.SKIP if get_origin(_without_none(field.type)) is list else STRICT
                marks[field.name] = skips if field.required else skips | Lenient.ERROR
        for base in reversed(struct.__mro__):
            marks |= self._lenient.get(base, {})
        return marks

    def _field_builder(self, field: FieldInfo, lenient: Mapping[str, Lenient]) -> Build:
        whole = self._builder(field.type)
        if Lenient.SKIP not in lenient.get(field.name, STRICT):
            return whole
        items = self._list(get_args(_without_none(field.type))[0], 0, skips=True)
        return lambda value: items(value) if isinstance(value, list) else whole(value)


@cache
def repair(version: int) -> Repair:
    """Return the only one of a version. Its tables load every type of the version."""
    return Repair(version)


def _unknown(union: Open | None, tag_field: str, value: dict[str, Any]) -> Unknown:
    """Return an unknown variant, if its union is open and it has the required keys. Raises `Malformed`."""
    if union is None:
        raise Malformed("Unknown variant").under(f".{tag_field}")
    if not isinstance(value[tag_field], str):
        raise Malformed("Expected `str`").under(f".{tag_field}")
    for key, type in union.needs.items():
        if key not in value:
            raise Malformed(f"Object missing required field `{key}`")
        _leaf(type, value[key])
    if union.one_of:
        given = sum(key in value for key in union.one_of)
        if given == 0 or (union.exactly and given > 1):
            raise Malformed(f"Needs one of {', '.join(union.one_of)}")
    return Unknown(value)


def _leaf(type: Any, value: Any) -> Any:
    try:
        return msgspec.convert(value, type, dec_hook=choose)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        # msgspec quotes an unknown enum value, which may be secret (RPC-27).
        reason = re.sub(r"^(Invalid (?:enum )?value) .*", r"\1", reason, flags=re.DOTALL)
        raise Malformed(reason).under(path.rstrip("`")) from None


def _closed_enum(type: type[ClosedEnum], value: Any) -> Any:
    try:
        return type(value)
    except ValueError:
        known = ", ".join(map(repr, map(str, type)))
        raise Malformed(f"Expected one of {known}, got {one_line(repr(value), limit=60)}") from None


def is_struct(type: Any) -> bool:
    return isinstance(type, msgspec.StructMeta)


def _unwrapped(type: Any) -> tuple[Any, int]:
    """Return a type without its constraints, and their minimum length."""
    least = 0
    while True:
        if get_origin(type) is Annotated:
            least = next((meta.min_length or 0 for meta in type.__metadata__), 0)
            type = type.__origin__
        elif hasattr(type, "__supertype__"):
            type = type.__supertype__
        else:
            return type, least


def _without_none(type: Any) -> Any:
    """Return the type of a field without `None` and `UnsetType`."""
    plain, _ = _unwrapped(type)
    if get_origin(plain) in (Union, UnionType):
        members = [item for item in get_args(plain) if item not in (NoneType, UnsetType)]
        plain, _ = _unwrapped(members[0])
    return plain


def _empty(field: FieldInfo) -> Any:
    """Return the empty value of a required lenient field. The schemas mark only arrays and objects so."""
    return {} if get_origin(_unwrapped(field.type)[0]) is dict else []
