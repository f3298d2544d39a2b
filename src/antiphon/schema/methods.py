"""One table: (method, version) -> its sender, kind, params and result.

A missing pair *is* the version error. The rows of a version are generated; those of Antiphon's methods are
the same in every version. The types of a method are loaded on use.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import Struct

VERSIONS = (1, 2)
OWN = "_antiphon/"
"""The prefix of Antiphon's methods."""
ANTIPHON_PACKAGE = "antiphon"


class Kind(StrEnum):
    REQUEST = "request"
    NOTIFICATION = "notification"


class Sender(StrEnum):
    CLIENT = "client"
    AGENT = "agent"
    EITHER = "either"


class Row(Struct, frozen=True):
    """A generated row of the table, with types by name."""

    name: str
    kind: Kind
    sender: Sender
    stable: bool
    session_scoped: bool
    params: str
    result: str | None


class Method(Struct, frozen=True):
    """A method of one version. `session_scoped`: the params have a `sessionId`, which is `UNSET` only on an
    elicitation that belongs to a request (ELIC-04)."""

    name: str
    version: int
    kind: Kind
    sender: Sender
    stable: bool
    params: Any
    result: Any
    session_scoped: bool


@cache
def _rows(package: str) -> dict[tuple[str, Kind], Row]:
    rows: tuple[Row, ...] = import_module(f"antiphon.schema.{package}.methods").ROWS
    return {(row.name, row.kind): row for row in rows}


def resolve(package: str, name: str | None) -> Any:
    """Return the type `page.Name` of a package; `None` for `None`."""
    if name is None:
        return None
    page, _, type_name = name.partition(".")
    return getattr(import_module(f"antiphon.schema.{package}.{page}"), type_name)


def find(kind: Kind, name: str, version: int) -> Method | None:
    """Return a method of a version, or `None` if the version has no such method."""
    if version not in VERSIONS:
        return None
    package = ANTIPHON_PACKAGE if name.startswith(OWN) else f"v{version}"
    row = _rows(package).get((name, kind))
    # Only existing methods are cached: names come from peers, who could fill the cache.
    return None if row is None else _method(package, version, row)


@cache
def _method(package: str, version: int, row: Row) -> Method:
    return Method(
        row.name, version, row.kind, row.sender, row.stable,
        resolve(package, row.params), resolve(package, row.result), row.session_scoped,
    )  # fmt: skip


def methods(version: int) -> list[Method]:
    """Return every published method of a version. Loads all of its types."""
    package = f"v{version}"
    return [_method(package, version, row) for row in _rows(package).values()]


def antiphon_methods() -> list[Method]:
    """Return every method of Antiphon, as in the latest version. Loads all of their types."""
    return [_method(ANTIPHON_PACKAGE, VERSIONS[-1], row) for row in _rows(ANTIPHON_PACKAGE).values()]
