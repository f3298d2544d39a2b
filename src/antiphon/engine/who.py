"""Who: a client as the other clients of its session know it. Its own data are cleaned and bounded."""

from __future__ import annotations

from typing import Any, TypeAlias

from antiphon.schema.version import ours_in
from antiphon.schema.wire import Wire

NAME_LIMIT = 64
ID_LIMIT = 64
UNNAMED = "unknown"


class Who(Wire, frozen=True, kw_only=True):
    """`client_id` is the same over all connections of one client, if the client sends one."""

    client_id: str
    name: str

    def to_meta(self) -> dict[str, str]:
        """Return it as an entry of a `_meta`."""
        return {"clientId": self.client_id, "name": self.name}


class Present(Wire, frozen=True, kw_only=True):
    """A client that is attached to a session since `joined_at` (RFC 3339). `you`: the client that gets the
    list."""

    client_id: str
    name: str
    version: str | None = None
    joined_at: str | None = None
    you: bool = False


Named: TypeAlias = Who | str
"""A client in a journal; the first journals had a name alone."""


def who_of(named: Named) -> Who:
    return named if isinstance(named, Who) else Who(client_id=named, name=clean_name(named) or UNNAMED)


def clean_name(given: Any, *, limit: int = NAME_LIMIT) -> str | None:
    """Return one short line without characters that move a cursor or reverse text."""
    if not isinstance(given, str):
        return None
    # The input may have any size. Not printable are controls, formats, surrogates and unusual spaces.
    shown = "".join(c if c.isprintable() else " " for c in given[: 8 * limit])
    return " ".join(shown.split())[:limit].rstrip() or None


def read_client_id(given: Any) -> str | None:
    """Return the id that a client gave, or `None` if it is not valid."""
    if not isinstance(given, str) or not 0 < len(given) <= ID_LIMIT:
        return None
    return given if given.isascii() and given.isprintable() and " " not in given else None


def sender_in(meta: Any) -> Who | None:
    """Return the sender of a message, if its `_meta` names one."""
    return read_who(ours_in(meta).get("sender"))


def read_who(given: Any) -> Who | None:
    """Read a client as a peer describes it."""
    id = given.get("clientId") if isinstance(given, dict) else None
    if not isinstance(id, str):
        return None
    return Who(client_id=id[:ID_LIMIT], name=clean_name(given.get("name")) or UNNAMED)
