"""Who: a client as the others of its session know it. What it says of itself is cleaned and bounded."""

from __future__ import annotations

from typing import Any, TypeAlias

from antiphon.schema.version import ours_in
from antiphon.schema.wire import Wire

NAME_LIMIT = 64
ID_LIMIT = 64
UNNAMED = "unknown"


class Who(Wire, frozen=True, kw_only=True):
    """`client_id` is the same over the connections of one client, where that gives it itself."""

    client_id: str
    name: str

    def to_meta(self) -> dict[str, str]:
        """As it stands in a `_meta`."""
        return {"clientId": self.client_id, "name": self.name}


class Present(Wire, frozen=True, kw_only=True):
    """A client that follows a session now, since `joined_at` (RFC 3339). `you`: whom it is told."""

    client_id: str
    name: str
    version: str | None = None
    joined_at: str | None = None
    you: bool = False


Named: TypeAlias = Who | str
"""In a journal; the first ones had a word alone."""


def who_of(named: Named) -> Who:
    return named if isinstance(named, Who) else Who(client_id=named, name=clean_name(named) or UNNAMED)


def clean_name(given: Any, *, limit: int = NAME_LIMIT) -> str | None:
    """One short line that shows as what it is: nothing in it moves a cursor or turns a text around."""
    if not isinstance(given, str):
        return None
    # Of any size when it comes; what is not printable are controls, formats, surrogates and odd spaces.
    shown = "".join(c if c.isprintable() else " " for c in given[: 8 * limit])
    return " ".join(shown.split())[:limit].rstrip() or None


def read_client_id(given: Any) -> str | None:
    """An id as a client gave it; None for what cannot be one."""
    if not isinstance(given, str) or not 0 < len(given) <= ID_LIMIT:
        return None
    return given if given.isascii() and given.isprintable() and " " not in given else None


def sender_in(meta: Any) -> Who | None:
    """Who sent a message, where its `_meta` says so."""
    return read_who(ours_in(meta).get("sender"))


def read_who(given: Any) -> Who | None:
    """A client as a peer tells of it."""
    id = given.get("clientId") if isinstance(given, dict) else None
    if not isinstance(id, str):
        return None
    return Who(client_id=id[:ID_LIMIT], name=clean_name(given.get("name")) or UNNAMED)
