"""Guests: who a client is, as it says itself when it comes or when it attaches."""

from __future__ import annotations

from typing import Any, NamedTuple

from antiphon.agent.session import new_id
from antiphon.engine.who import UNNAMED, Who, clean_name, read_client_id
from antiphon.schema.version import Offer, ours_in

VERSION_LIMIT = 32


class Guest(NamedTuple):
    who: Who
    version: str | None = None


def read_guest(offer: Offer, params: Any, before: Guest | None) -> Guest:
    """By its `initialize`, perhaps a second one. An id that is none is passed over: it is no reason to send
    anybody away."""
    info = getattr(params, "info", None) or getattr(params, "client_info", None)
    given = read_client_id(ours_in(offer.params.get("_meta")).get("clientId"))
    client_id = given or (new_id("client") if before is None else before.who.client_id)
    return _guest(client_id, getattr(info, "name", None), getattr(info, "version", None))


def renamed(guest: Guest, client_id: str | None, info: dict[str, Any]) -> Guest:
    """A client that tells more, or something else, about itself as it attaches."""
    return _guest(
        client_id or guest.who.client_id,
        info.get("name") or guest.who.name,
        info.get("version") or guest.version,
    )


def _guest(client_id: str, name: Any, version: Any) -> Guest:
    who = Who(client_id=client_id, name=clean_name(name) or UNNAMED)
    return Guest(who, clean_name(version, limit=VERSION_LIMIT))
