"""`_antiphon/link`: another link that lets a browser in, once. Only owners may ask for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antiphon.errors import InvalidParams
from antiphon.hub.browsers import LINK_SECONDS
from antiphon.hub.roles import RANKS, Role

if TYPE_CHECKING:
    from antiphon.hub.hub import Hub


def invite(hub: Hub, params: Any) -> dict[str, Any]:
    """The code, which stands behind `#login=` in a link to the hub's page, and for how long it is good; where
    the hub has a public URL, also that."""
    given = params if isinstance(params, dict) else {}
    role, sessions = given.get("role", Role.OWNER), given.get("sessions")
    if role not in RANKS:
        raise InvalidParams(f"`role` is one of {', '.join(RANKS)}")
    if sessions is not None and not _are_ids(sessions):
        raise InvalidParams("`sessions` is a list of ids")
    code = hub.browsers.invite(Role(role), sessions=sessions)
    public = {} if hub.public_url is None else {"url": f"{hub.public_url}/"}
    return {"code": code, "seconds": LINK_SECONDS, **public}


def _are_ids(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(isinstance(id, str) for id in given)
