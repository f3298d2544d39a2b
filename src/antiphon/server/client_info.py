"""ClientInfo: the name, version and id that a client gives itself, in `initialize` or when it attaches."""

from __future__ import annotations

from typing import Any, NamedTuple

from antiphon.engine.who import UNNAMED, Who, clean_name, read_client_id
from antiphon.schema.version import Offer, ours_in
from antiphon.server.ids import new_id

VERSION_LIMIT = 32


class ClientInfo(NamedTuple):
    who: Who
    version: str | None = None

    @property
    def client_id(self) -> str:
        return self.who.client_id


def read_client_info(offer: Offer, params: Any, before: ClientInfo | None) -> ClientInfo:
    """Read the params of `initialize`. An invalid id is ignored: it is no reason to refuse a client. A second
    `initialize` keeps the id of the first."""
    info = getattr(params, "info", None) or getattr(params, "client_info", None)
    given = read_client_id(ours_in(offer.params.get("_meta")).get("clientId"))
    client_id = given or (new_id("client") if before is None else before.client_id)
    return _info(client_id, getattr(info, "name", None), getattr(info, "version", None))


def renamed(before: ClientInfo, client_id: str | None, info: dict[str, Any]) -> ClientInfo:
    """Return the info of a client that gives more, or other, information as it attaches."""
    return _info(
        client_id or before.client_id,
        info.get("name") or before.who.name,
        info.get("version") or before.version,
    )


def _info(client_id: str, name: Any, version: Any) -> ClientInfo:
    who = Who(client_id=client_id, name=clean_name(name) or UNNAMED)
    return ClientInfo(who, clean_name(version, limit=VERSION_LIMIT))
