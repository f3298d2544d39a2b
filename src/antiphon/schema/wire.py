"""The parts of wire types: the base struct, open enums, unknown variants, untagged unions.

Types that the protocol names are in `v1/` and `v2/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, IntEnum, StrEnum, auto
from typing import Annotated, Any, Self, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType


class Wire(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """The base of every wire struct: keyword-only, immutable, camelCase on the wire (RPC-44).

    A field that is `UNSET` was absent. If a type has `None` and not `UNSET`, absent and `null` mean the same,
    and it is encoded as absent. Unknown keys are ignored (RPC-39). A wire value is a tree, so the garbage
    collector does not track it (`gc=False`).
    """


class Forgiving(Wire, frozen=True, kw_only=True):
    """The base of objects that are decoded leniently: a malformed field counts as absent, a malformed item of
    a list is dropped, and a value that is not an object counts as `{}`."""


class AntiphonUpdate(Forgiving, frozen=True, kw_only=True, tag_field="sessionUpdate"):
    """The base of the updates of Antiphon's protocol."""


class ClosedEnum(StrEnum):
    """A closed set of values of Antiphon's protocol. Errors quote other values, because none of these fields
    is secret."""


class OpenEnum(StrEnum):
    """Named values of a set that peers may extend: an unknown value is kept (EXT-06, EXT-07).

    Compare members by equality; only the named ones are singletons.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = value
        member._value_ = value
        return member

    @property
    def known(self) -> bool:
        """Whether the protocol names this value."""
        return self._value_ in type(self)._value2member_map_


class OpenIntEnum(IntEnum):
    """Named 32-bit integers of a set that peers may extend (RPC-23)."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, int) or not -(2**31) <= value < 2**31:
            return None
        member = int.__new__(cls, value)
        member._name_ = str(value)
        member._value_ = value
        return member

    @property
    def known(self) -> bool:
        """Whether the protocol names this value."""
        return self._value_ in type(self)._value2member_map_


class Unknown(dict[str, Any]):
    """A variant of an open union that this version does not name, with all its fields (EXT-07)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Unknown({super().__repr__()})"


class NoVariant(Wire, frozen=True, kw_only=True, tag_field="type", tag="\0"):
    """A variant that no peer sends. With it as a second member of a union, msgspec requires the tag."""


class Choice(type):
    """The metaclass of a union with no tag, or an optional one.

    For msgspec it is a custom type, which `choose` decodes; for mypy it is the plain union. `tagged` maps
    tags to members. A value without a known tag becomes the first member of `untagged` that it fits. With
    `open`, a value with an unknown string tag becomes `Unknown`.
    """

    tag_field: str | None
    tagged: Mapping[str, Any]
    untagged: tuple[Any, ...]
    open: bool

    def __instancecheck__(cls, instance: object) -> bool:
        members = (*cls.tagged.values(), *cls.untagged)
        return isinstance(instance, tuple(map(_class_of, members))) or (
            cls.open and isinstance(instance, Unknown)
        )

    def candidates(cls, value: object) -> tuple[Any, ...]:
        """Return the members to try for `value`, in order."""
        if cls.tag_field is not None and isinstance(value, dict) and cls.tag_field in value:
            tag = value[cls.tag_field]
            if isinstance(tag, str):
                if tag in cls.tagged:
                    return (cls.tagged[tag],)
                if cls.open:
                    return (Unknown,)
            elif cls.open:
                return ()
        return cls.untagged


def _class_of(member: Any) -> Any:
    """Return the class of a member's values: `list` for `Annotated[list[X], …]`."""
    if get_origin(member) is Annotated:
        member = get_args(member)[0]
    return get_origin(member) or member


def choose(type: Any, value: Any) -> Any:
    """Decode `value` as a member of a `Choice`: the `dec_hook` of every strict decoder."""
    if type is UnsetType:
        raise msgspec.ValidationError("Expected no value")
    if not isinstance(type, Choice):
        raise NotImplementedError(f"expected a Choice, got the type {type!r}")
    refusal: msgspec.ValidationError | None = None
    for member in type.candidates(value):
        if member is Unknown:
            return Unknown(value)
        try:
            return msgspec.convert(value, member, dec_hook=choose)
        except msgspec.ValidationError as error:
            refusal = refusal or error
    raise refusal or msgspec.ValidationError(f"Fits no member of {type.__name__}")


class Lenient(Flag):
    """How a malformed field is decoded (RPC-40). A field without a mark is strict."""

    ERROR = auto()
    """A malformed value counts as absent."""
    SKIP = auto()
    """Only the malformed items of an array are dropped."""
    NULL = auto()
    """`null` means empty."""


class Open(Struct, frozen=True):
    """A union that accepts unknown tags, and the keys that an unknown variant must have."""

    tag: str
    members: tuple[type[Wire], ...]
    needs: Mapping[str, Any] = {}
    """Keys of every variant, and their types."""
    one_of: tuple[str, ...] = ()
    """Keys of which a variant has exactly one; without `exactly`, at least one."""
    exactly: bool = True


def check_one_of(owner: Struct, names: tuple[str, ...], *, exactly: bool) -> None:
    """Raise `ValueError` unless the struct has one of the alternative fields (ELIC-04)."""
    given = sum(getattr(owner, name) is not UNSET for name in names)
    if given == 0 or (exactly and given > 1):
        raise ValueError(f"Needs {'exactly' if exactly else 'at least'} one of {', '.join(names)}")


__all__ = [
    "UNSET",
    "AntiphonUpdate",
    "Choice",
    "ClosedEnum",
    "Forgiving",
    "Lenient",
    "NoVariant",
    "Open",
    "OpenEnum",
    "OpenIntEnum",
    "Unknown",
    "UnsetType",
    "Wire",
    "check_one_of",
    "choose",
]  # fmt: skip
