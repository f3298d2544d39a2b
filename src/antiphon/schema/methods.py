"""One table: (method, version) -> who sends it, request or notification, its params and its result.

A pair that is missing here *is* the version error. The rows are generated, per version, and a version's
types are loaded when one of its methods is asked for.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import Struct

VERSIONS = (1, 2)


class Kind(StrEnum):
    REQUEST = "request"
    NOTIFICATION = "notification"


class Sender(StrEnum):
    CLIENT = "client"
    AGENT = "agent"
    EITHER = "either"


class Row(Struct, frozen=True):
    """A method as generated: its types by name."""

    name: str
    kind: Kind
    sender: Sender
    stable: bool
    session_scoped: bool
    params: str
    result: str | None


class Method(Struct, frozen=True):
    """A method of one version. `session_scoped` says that the params have a `sessionId`, which is
    `UNSET` only on an elicitation that belongs to a request (ELIC-04)."""

    name: str
    version: int
    kind: Kind
    sender: Sender
    stable: bool
    params: Any
    result: Any
    session_scoped: bool


@cache
def _rows(version: int) -> dict[tuple[str, Kind], Row]:
    if version not in VERSIONS:
        return {}
    rows: tuple[Row, ...] = import_module(f"antiphon.schema.v{version}.methods").ROWS
    return {(row.name, row.kind): row for row in rows}


def resolve(version: int, name: str | None) -> Any:
    """The type that is called `page.Name` in a version; `None` for `None`."""
    if name is None:
        return None
    page, _, type_name = name.partition(".")
    return getattr(import_module(f"antiphon.schema.v{version}.{page}"), type_name)


def find(kind: Kind, name: str, version: int) -> Method | None:
    row = _rows(version).get((name, kind))
    # Only what exists is kept: names come from peers, who could fill a cache with them.
    return None if row is None else _method(version, row)


@cache
def _method(version: int, row: Row) -> Method:
    return Method(
        row.name, version, row.kind, row.sender, row.stable,
        resolve(version, row.params), resolve(version, row.result), row.session_scoped,
    )  # fmt: skip


def request(name: str, version: int) -> Method | None:
    """The request `name` of `version`, if there is one."""
    return find(Kind.REQUEST, name, version)


def notification(name: str, version: int) -> Method | None:
    """The notification `name` of `version`, if there is one."""
    return find(Kind.NOTIFICATION, name, version)


def methods(version: int) -> list[Method]:
    """Every method of a version; loads all of its types."""
    found = (find(kind, name, version) for name, kind in _rows(version))
    return [method for method in found if method is not None]
