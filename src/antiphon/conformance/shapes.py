"""Shapes: compares JSON values with the types of the pinned schemas, and names every place that does not fit.

A receiver forgives much (RPC-40), and a judge of the sender does not: a malformed optional field is a problem
too. Only `null` counts as absent wherever the schema lets a receiver read it so.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from enum import EnumType, StrEnum
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import Raw, Struct, UnsetType

from antiphon.schema.repair import is_struct
from antiphon.schema.wire import Choice, Lenient, NoVariant, OpenEnum, OpenIntEnum, Unknown, choose

NOT_PUBLISHED = (".optins", ".proposed")
"""Modules of types that no schema has: peers send them only where both sides agreed on it."""
PATHS = frozenset({
    ("Diff", "path"), ("DiffAdd", "path"), ("DiffDelete", "path"), ("DiffModify", "path"),
    ("DiffMove", "path"), ("DiffMove", "oldPath"), ("DiffCopy", "path"), ("DiffCopy", "oldPath"),
    ("ToolCallLocation", "path"), ("ReadTextFileRequest", "path"), ("WriteTextFileRequest", "path"),
    ("CreateTerminalRequest", "cwd"), ("TerminalUpdate", "cwd"), ("CommandPermissionSubject", "cwd"),
    ("NewSessionRequest", "cwd"), ("LoadSessionRequest", "cwd"), ("ResumeSessionRequest", "cwd"),
    ("ForkSessionRequest", "cwd"), ("ListSessionsRequest", "cwd"), ("SessionInfo", "cwd"),
    ("NewSessionRequest", "additionalDirectories"), ("LoadSessionRequest", "additionalDirectories"),
    ("ResumeSessionRequest", "additionalDirectories"), ("ForkSessionRequest", "additionalDirectories"),
    ("SessionInfo", "additionalDirectories"), ("McpServerStdio", "command"),
})  # fmt: skip
"""Fields that hold absolute paths: the schemas have them as text."""
BASE64 = frozenset({
    ("ImageContent", "data"), ("AudioContent", "data"), ("BlobResourceContents", "blob"),
    ("TerminalOutput", "data"), ("TerminalOutputChunk", "data"),
})  # fmt: skip
OTHER_NAMES = {("CurrentModeUpdate", "currentModeId"): "modeId"}  # C-19
TOLERATED = frozenset({
    ("CurrentModeUpdate", "modeId"),
    ("SetSessionConfigOptionId", "type"),  # C-08
    ("AuthMethodAgent", "type"), ("McpServerStdio", "type"),
    *(("SessionInfo", key) for key in (
        "createdAt", "lastPromptAt", "gitBranch", "model", "forkedFrom", "state", "lastTurnEndedAt", "cost",
    )),
})  # fmt: skip
"""Keys that no pinned schema has and published texts do: v1 objects with a superfluous `type`, and the draft
"session-list-extensions"."""
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
_SNAKE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")


class Fault(StrEnum):
    """What is wrong at a place."""

    MALFORMED = "malformed"
    """A required field is missing, or a value has the wrong type."""
    UNKNOWN_KEY = "unknown key"
    SNAKE_CASE = "snake case"
    """A known key in another spelling."""
    UNKNOWN_VALUE = "unknown value"
    """A value of an enum that the schema does not have."""
    UNKNOWN_VARIANT = "unknown variant"
    """A tag of a union that the schema does not have."""
    META = "meta"
    """`_meta` is neither an object nor `null`."""
    RELATIVE_PATH = "relative path"
    BASE64 = "base64"


class Problem(Struct, frozen=True):
    """One place that does not fit. `owners` are the types around it, innermost first; `key` is the field."""

    fault: Fault
    path: str
    owners: tuple[str, ...]
    key: str
    text: str
    """Begins with "expected"."""
    value: Any = None
    """The unknown value or tag, or what stands in the place of an object."""


class Place(Struct, frozen=True):
    """Where a value stands."""

    path: str
    owners: tuple[str, ...]
    key: str

    def of(self, fault: Fault, text: str, value: Any = None) -> Problem:
        return Problem(fault, self.path, self.owners, self.key, f"expected {text} at `{self.path}`", value)

    def item(self, index: int | str) -> Place:
        return Place(f"{self.path}[{index}]", self.owners, self.key)


Look = Callable[[Any, Place], Iterator[Problem]]


class Shapes:
    """The shapes of one protocol version."""

    def __init__(self, version: int) -> None:
        tables = import_module(f"antiphon.schema.v{version}.leniency")
        self._version = version
        self._lenient = tables.LENIENT
        self._open_tags = {member for union in tables.OPEN for member in union.members}
        self._open_structs = tables.OPEN_STRUCTS
        self._looks: dict[Any, Look] = {}
        self.seen: set[str] = set()
        """Names of the types that were compared, and of their fields as `Type.key`."""
        self.tagged: set[str] = set()
        """Names of the types that are variants of a union."""

    def problems(self, type: Any, value: Any, *, path: str) -> list[Problem]:
        """Return every place of a value that does not fit a type. `path` is how the value is named."""
        self.seen = set()
        return list(self._look(type)(value, Place(path, (), "")))

    def _look(self, type: Any) -> Look:
        found = self._looks.get(type)
        if found is None:
            # A type may contain itself: the look of such a type is found when it is used.
            self._looks[type] = lambda value, place: self._looks[type](value, place)
            found = self._looks[type] = self._make(type)
        return found

    def _make(self, type: Any) -> Look:
        plain = _plain(type)
        origin, arguments = get_origin(plain), get_args(plain)
        if plain is Any or plain is Raw:
            return lambda value, place: iter(())
        if origin is list:
            return self._list(arguments[0], _least(type))
        if origin is dict:
            return self._dict(arguments[1])
        if origin in (Union, UnionType):
            return self._union(type, arguments)
        if isinstance(plain, Choice):
            return self._choice(plain)
        if is_struct(plain):
            return self._struct(plain)
        if isinstance(plain, EnumType) and not issubclass(plain, OpenIntEnum):
            return self._enum(plain)
        return lambda value, place: _leaf(type, value, place)

    def _list(self, item: Any, least: int) -> Look:
        look = self._look(item)

        def look_at_list(value: Any, place: Place) -> Iterator[Problem]:
            if not isinstance(value, list):
                yield place.of(Fault.MALFORMED, f"an array, got {glimpse(value)}")
                return
            if len(value) < least:
                yield place.of(Fault.MALFORMED, f"an array of at least {least}, got {len(value)}")
            for index, entry in enumerate(value):
                yield from look(entry, place.item(index))

        return look_at_list

    def _dict(self, item: Any) -> Look:
        look = self._look(item)

        def look_at_dict(value: Any, place: Place) -> Iterator[Problem]:
            if not isinstance(value, dict):
                yield place.of(Fault.MALFORMED, f"an object, got {glimpse(value)}", value)
                return
            for key, entry in value.items():
                yield from look(entry, place.item(key))

        return look_at_dict

    def _union(self, type: Any, arguments: tuple[Any, ...]) -> Look:
        members = [each for each in arguments if each not in (NoneType, UnsetType, NoVariant)]
        tagged = [each for each in members if is_struct(each)]
        inner: Look
        if len(members) == 1 and NoVariant not in arguments:
            inner = self._look(members[0])
        elif tagged == members:
            inner = self._tagged(tagged)
        else:
            inner = lambda value, place: _leaf(type, value, place)  # noqa: E731
        if NoneType not in arguments:
            return inner
        return lambda value, place: iter(()) if value is None else inner(value, place)

    def _tagged(self, structs: list[Any]) -> Look:
        tag_field: str = structs[0].__struct_config__.tag_field
        published = [each for each in structs if not each.__module__.endswith(NOT_PUBLISHED)]
        looks = {each.__struct_config__.tag: self._look(each) for each in published}
        self.tagged |= {each.__name__ for each in published}
        is_open = self._version == 2 and any(each in self._open_tags for each in structs)
        forms = any("Elicitation" in each.__name__ or "PropertySchema" in each.__name__ for each in structs)

        def look_at_variant(value: Any, place: Place) -> Iterator[Problem]:
            if not isinstance(value, dict):
                yield place.of(Fault.MALFORMED, f"an object, got {glimpse(value)}", value)
                return
            tag = value.get(tag_field)
            here = Place(f"{place.path}.{tag_field}", place.owners, tag_field)
            if not isinstance(tag, str):
                said = "an object without it" if tag_field not in value else glimpse(tag)
                yield here.of(Fault.MALFORMED, f"text, got {said}")
            elif tag in looks:
                yield from looks[tag](value, place)
            elif not ((is_open or forms) and tag.startswith("_")):
                yield here.of(Fault.UNKNOWN_VARIANT, f"one of {', '.join(looks)}, got {glimpse(tag)}", tag)

        return look_at_variant

    def _choice(self, choice: Choice) -> Look:
        def look_at_choice(value: Any, place: Place) -> Iterator[Problem]:
            fewest: list[Problem] | None = None
            for member in choice.candidates(value):
                if member is Unknown:
                    return
                problems = list(self._look(member)(value, place))
                if not problems:
                    return
                if fewest is None or len(problems) < len(fewest):
                    fewest = problems
            if fewest is None:
                fewest = [place.of(Fault.MALFORMED, f"a {choice.__name__}, got {glimpse(value)}")]
            yield from fewest

        return look_at_choice

    def _enum(self, enum: Any) -> Look:
        names = [str(member) for member in enum]
        # In v2 a custom value of an open enum begins with `_` (EXT-06); in v1 few are open (EXT-10).
        is_open = issubclass(enum, OpenEnum) or enum.__name__ == "State"

        def look_at_enum(value: Any, place: Place) -> Iterator[Problem]:
            if not isinstance(value, str):
                yield place.of(Fault.MALFORMED, f"text, got {glimpse(value)}")
            elif value not in names and not (is_open and value.startswith("_")):
                text = f"one of {', '.join(names)}, got {glimpse(value)}"
                yield place.of(Fault.UNKNOWN_VALUE, text, value)

        return look_at_enum

    def _struct(self, struct: Any) -> Look:
        name = struct.__name__
        config = struct.__struct_config__
        tag_field: str | None = config.tag_field
        fields = {
            each.encode_name: (each.required, self._look(each.type), self._reads_null(struct, each.name))
            for each in msgspec.structs.fields(struct)
            if each.name != "proposed_reason"
        }

        def look_at_struct(value: Any, place: Place) -> Iterator[Problem]:
            owners = (name, *place.owners)
            if not isinstance(value, dict):
                here = Place(place.path, owners, place.key)
                yield here.of(Fault.MALFORMED, f"an object, got {glimpse(value)}", value)
                return
            self.seen.add(name)
            if config.tag is not None and value.get(tag_field, config.tag) != config.tag:
                tag = value[tag_field]
                if not isinstance(tag, str) or not tag.startswith("_"):
                    here = Place(f"{place.path}.{tag_field}", owners, str(tag_field))
                    text = f"{config.tag!r}, got {glimpse(tag)}"
                    yield here.of(Fault.UNKNOWN_VARIANT, text, tag)
                return
            if config.tag is not None and tag_field not in value:
                here = Place(place.path, owners, str(tag_field))
                yield here.of(Fault.MALFORMED, f"an object with `{tag_field}`")
            missing = False
            for key, (required, look, reads_null) in fields.items():
                other = OTHER_NAMES.get((name, key), "")
                here = Place(f"{place.path}.{key}", owners, key)
                if key not in value:
                    if required and other not in value and _snake(key) not in value:
                        missing = True
                        there = Place(place.path, owners, key)
                        yield there.of(Fault.MALFORMED, f"an object with `{key}`")
                    continue
                self.seen.add(f"{name}.{key}")
                entry = value[key]
                if key == "_meta":
                    if entry is not None and not isinstance(entry, dict):
                        yield here.of(Fault.META, f"an object or `null`, got {glimpse(entry)}")
                elif not (entry is None and reads_null):
                    yield from look(entry, here)
                    yield from self._texts(name, key, entry, here)
            if not missing:  # else another shape is meant, and its keys are no second problem
                yield from _other_keys(value, fields, tag_field, name, Place(place.path, owners, ""))

        return look_at_struct

    def _texts(self, name: str, key: str, value: Any, place: Place) -> Iterator[Problem]:
        """Look at text that has to be a path or base64."""
        if (name, key) in PATHS:
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, str) and not _ABSOLUTE.match(path):
                    yield place.of(Fault.RELATIVE_PATH, f"an absolute path, got {glimpse(path)}")
        elif (
            (name, key) in BASE64 and self._version == 2 and isinstance(value, str) and not _is_base64(value)
        ):
            yield place.of(Fault.BASE64, f"standard base64, got {glimpse(value)}")

    def _reads_null(self, struct: Any, name: str) -> bool:
        """Whether a receiver reads `null` in a field as absent or empty."""
        return any(
            mark in self._lenient.get(base, {}).get(name, Lenient(0))
            for base in struct.__mro__
            for mark in (Lenient.NULL, Lenient.ERROR)
        )


@cache
def shapes(version: int) -> Shapes:
    """Return the shapes of a version."""
    return Shapes(version)


def keys_of(type: Any) -> set[str]:
    """Return the keys that an object of a type may have."""
    return {each.encode_name for each in msgspec.structs.fields(type)} if is_struct(type) else set()


def glimpse(value: Any) -> str:
    """Return the beginning of a value as JSON."""
    try:
        text = msgspec.json.encode(value).decode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return f"`{text if len(text) <= 60 else text[:59] + '…'}`"


def _other_keys(
    value: dict[str, Any], fields: dict[str, Any], tag_field: str | None, name: str, place: Place
) -> Iterator[Problem]:
    for key in value:
        if key in fields or key == tag_field or (name, key) in TOLERATED:
            continue
        here = Place(f"{place.path}.{key}", place.owners, key)
        if _SNAKE.fullmatch(key) and _camel(key) in fields:
            yield here.of(Fault.SNAKE_CASE, f"the key `{_camel(key)}` instead of `{key}`", key)
        else:
            yield here.of(Fault.UNKNOWN_KEY, f"no key `{key}`, which `{name}` does not have,", key)


def _leaf(type: Any, value: Any, place: Place) -> Iterator[Problem]:
    try:
        msgspec.convert(value, type, dec_hook=choose)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        reason, _, _ = str(error).partition(" - at ")
        yield place.of(Fault.MALFORMED, f"another value than {glimpse(value)} ({reason})")


def _plain(type: Any) -> Any:
    """Return a type without its constraints and names."""
    while True:
        if get_origin(type) is Annotated:
            type = type.__origin__
        elif hasattr(type, "__supertype__"):
            type = type.__supertype__
        else:
            return type


def _least(type: Any) -> int:
    """Return the minimum length of an array."""
    if get_origin(type) is not Annotated:
        return 0
    return next((meta.min_length for meta in type.__metadata__ if meta.min_length), 0)


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _snake(key: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", lambda match: f"_{match[1].lower()}", key)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True
