"""What every wire type is made of: the base struct, open sets of values, unknown variants, choices.

Only building blocks live here; a type that the protocol names lives in `v1/` or `v2/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, IntEnum, StrEnum, auto
from typing import Annotated, Any, Self, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType


class Wire(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """The base of every wire struct: keyword-only, immutable, camelCase outside (RPC-44).

    A field that is `UNSET` was absent; where a type says `None` and not `UNSET`, absent and `null`
    mean the same and are written as absent. Unknown keys are ignored (RPC-39). A wire value is a tree,
    so the cycle collector need not look at it (`gc=False`).
    """


class Forgiving(Wire, frozen=True, kw_only=True):
    """The base of what a peer says without being asked: a malformed field counts as absent, a malformed item
    of a list is dropped, and what is no object counts as an empty one."""


class OwnUpdate(Forgiving, frozen=True, kw_only=True, tag_field="sessionUpdate"):
    """The base of the updates of our own protocol."""


class OwnEnum(StrEnum):
    """A closed set of values of our own protocol. An error quotes a value that is not in it: none of our
    fields holds a secret."""


class OpenEnum(StrEnum):
    """Named values of a set that others may extend: an unknown one is kept (EXT-06, EXT-07).

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
    """Named 32-bit integers of a set that others may extend (RPC-23)."""

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
    """A variant of an open union that this version of the protocol does not name, kept whole (EXT-07)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Unknown({super().__repr__()})"


class NoVariant(Wire, frozen=True, kw_only=True, tag_field="type", tag="\0"):
    """Never seen. msgspec forgives a missing tag where a union has one member; with this beside it, not."""


class Choice(type):
    """The metaclass of a union that no tag, or only an optional one, tells apart.

    msgspec sees a foreign type and asks the codec's hook; mypy sees the plain union. `tagged` maps the
    tag to its member; a value without a known tag is the first of `untagged` that it fits; with `open`
    a string tag that is not known makes it `Unknown`.
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
        """The members that `value` may be, in the order to try them."""
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
    """The class that values of a member have: of `Annotated[list[X], …]` that is `list`."""
    if get_origin(member) is Annotated:
        member = get_args(member)[0]
    return get_origin(member) or member


def choose(type: Any, value: Any) -> Any:
    """The `dec_hook` of every strict decoder: the member of a choice that `value` is."""
    if type is UnsetType:
        raise msgspec.ValidationError("Expected no value")
    if not isinstance(type, Choice):
        raise NotImplementedError(f"no such wire type: {type!r}")
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
    """How a receiver forgives a field (RPC-40); a field without a mark is strict."""

    ERROR = auto()
    """A malformed value counts as absent."""
    SKIP = auto()
    """Only the malformed items of an array are dropped."""
    NULL = auto()
    """`null` means empty."""


class Open(Struct, frozen=True):
    """A union that admits tags it does not name: what is needed of an unknown variant to be one."""

    tag: str
    members: tuple[type[Wire], ...]
    needs: Mapping[str, Any] = {}
    """Keys that every variant has, and their types."""
    one_of: tuple[str, ...] = ()
    """Keys of which a variant has exactly one, or at least one unless `exactly`."""
    exactly: bool = True


def check_one_of(owner: Struct, names: tuple[str, ...], *, exactly: bool) -> None:
    """Refuses a struct whose alternatives are not told apart (ELIC-04)."""
    given = sum(getattr(owner, name) is not UNSET for name in names)
    if given == 0 or (exactly and given > 1):
        raise ValueError(f"Needs {'exactly' if exactly else 'at least'} one of {', '.join(names)}")


__all__ = [
    "UNSET", "Choice", "Forgiving", "Lenient", "NoVariant", "Open", "OpenEnum", "OpenIntEnum", "OwnEnum",
    "OwnUpdate", "Unknown", "UnsetType", "Wire", "check_one_of", "choose",
]  # fmt: skip
