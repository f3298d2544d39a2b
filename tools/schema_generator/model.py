"""The types of one version, between the schema that says them and the source that writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Field:
    wire: str
    name: str
    annotation: str
    default: str | None
    """Source of the default; a field without one is required."""
    lenient: tuple[str, ...] = ()
    unstable: bool = False


@dataclass(frozen=True)
class StructType:
    name: str
    page: str
    doc: str
    fields: tuple[Field, ...]
    base: str = "Wire"
    tag: tuple[str, str] | None = None
    one_of: tuple[str, ...] = ()
    exactly: bool = True
    open_field: str | None = None
    """The closed enum field that makes an object with another value `Unknown`."""

    def names(self) -> Iterable[str]:
        yield self.base
        for item in self.fields:
            yield from identifiers(item.annotation)
            yield from identifiers(item.default or "")


@dataclass(frozen=True)
class EnumType:
    name: str
    page: str
    doc: str
    members: tuple[tuple[str, str | int, bool], ...]
    """Name, value, whether only the unstable schema has it."""
    kind: str
    """`StrEnum`, `OpenEnum` or `OpenIntEnum`."""

    def names(self) -> Iterable[str]:
        return ()


@dataclass(frozen=True)
class AliasType:
    name: str
    page: str
    doc: str
    annotation: str
    new_type: bool = False

    def names(self) -> Iterable[str]:
        return identifiers(self.annotation)


@dataclass(frozen=True)
class UnionType:
    name: str
    page: str
    doc: str
    tag_field: str
    members: tuple[tuple[str, str, bool], ...]
    """Struct, tag, whether only the unstable schema has it."""
    open: bool
    extra: tuple[str, ...] = ()
    """Hand-written variants."""
    needs: tuple[tuple[str, str], ...] = ()
    one_of: tuple[str, ...] = ()
    exactly: bool = True
    guarded: bool = False
    """One member alone, whose tag must not be missing."""

    def names(self) -> Iterable[str]:
        return [member for member, _, _ in self.members]


@dataclass(frozen=True)
class ChoiceType:
    name: str
    page: str
    doc: str
    tag_field: str | None
    tagged: tuple[tuple[str, str, bool], ...]
    """Tag, struct, whether only the unstable schema has it."""
    untagged: tuple[str, ...]
    open: bool

    def names(self) -> Iterable[str]:
        yield from (struct for _, struct, _ in self.tagged)
        for text in self.untagged:
            yield from identifiers(text)


AnyType = StructType | EnumType | AliasType | UnionType | ChoiceType


@dataclass(frozen=True)
class Row:
    """One line of the method table; types as `page.Name`, or `None` where a method has none."""

    name: str
    kind: str
    sender: str
    stable: bool
    params: str
    result: str | None
    session_scoped: bool


@dataclass
class Version:
    number: int
    types: dict[str, AnyType] = field(default_factory=dict)
    methods: list[Row] = field(default_factory=list)
    unstable_definitions: set[str] = field(default_factory=set)
    unstable_fields: set[tuple[str, str]] = field(default_factory=set)
    unstable_variants: set[tuple[str, str]] = field(default_factory=set)

    def add(self, item: AnyType) -> None:
        if item.name in self.types:
            raise ValueError(f"v{self.number}: two types are called {item.name}")
        self.types[item.name] = item

    def on_page(self, page: str) -> list[AnyType]:
        """The types of a page, each after those it needs."""
        mine = {name: item for name, item in self.types.items() if item.page == page}
        ordered: dict[str, AnyType] = {}

        def place(item: AnyType) -> None:
            if item.name in ordered:
                return
            for name in item.names():
                if name in mine and name != item.name:
                    place(mine[name])
            ordered[item.name] = item

        for item in mine.values():
            place(item)
        return list(ordered.values())


def identifiers(text: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", text)


def snake(wire: str) -> str:
    """`sessionId` as `session_id`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", wire).lower()


def camel(name: str) -> str:
    """`agent_message_chunk` as `AgentMessageChunk`."""
    return "".join(part.capitalize() for part in name.split("_"))
