"""Clients as the other clients of their session know them. Their own data are cleaned and bounded."""

from __future__ import annotations

from typing import Any, TypeAlias

from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.messages import MessageMeta
from antiphon.schema.antiphon.readers import read_meta

NAME_LIMIT = 64
ID_LIMIT = 64
UNNAMED = "unknown"


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


def sender_in(meta: Any) -> Who | None:
    """Return the sender of a message, if its `_meta` names one."""
    return clean_who(read_meta(MessageMeta, meta).sender)


def clean_who(given: Who | None) -> Who | None:
    """Return a client as a peer names it, with its id bounded and its name as one line."""
    if given is None:
        return None
    return Who(client_id=given.client_id[:ID_LIMIT], name=clean_name(given.name) or UNNAMED)
