"""Roles: who may do what, as one table. A method that is not in it is for owners alone."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    OBSERVER = "observer"
    """Reads: lists, replays and follows. Is never asked anything."""
    CONTROLLER = "controller"
    """Also prompts, cancels, answers and configures."""
    OWNER = "owner"
    """Also deletes, closes for all, and says who an agent is logged in as and where it gets its models."""

    METRICS = "metrics"
    """Reads the hub's numbers at `/metrics`, and has nothing to do with its sessions."""

    def includes(self, other: Role) -> bool:
        return self in RANKS and other in RANKS and RANKS.index(self) >= RANKS.index(other)


RANKS = (Role.OBSERVER, Role.CONTROLLER, Role.OWNER)
"""Those of clients: each may do what the one before it may."""

CLOSE_FOR_ALL = "session/close for all"
"""`session/close` with `_meta["antiphon"].forAll`; without it, it is the client's own leaving."""
EXTENSION = "_"
"""Every method of this kind that is not ours: what it does, only client and agent know."""

NEEDS: dict[str, Role] = {
    "$/cancel_request": Role.OBSERVER,  # it reaches the client's own requests alone
    "initialize": Role.OBSERVER,
    "auth/status": Role.OBSERVER,
    "session/list": Role.OBSERVER,
    "session/load": Role.OBSERVER,
    "session/resume": Role.OBSERVER,
    "session/status": Role.OBSERVER,
    "session/close": Role.OBSERVER,  # an observer's only leaves the session
    "_antiphon/attach": Role.OBSERVER,
    "_antiphon/detach": Role.OBSERVER,
    "_antiphon/list_inject": Role.OBSERVER,
    "_antiphon/timeline": Role.OBSERVER,
    "_antiphon/transcript": Role.OBSERVER,
    "mcp/message": Role.CONTROLLER,
    "session/cancel": Role.CONTROLLER,
    "session/fork": Role.CONTROLLER,
    "session/new": Role.CONTROLLER,
    "session/prompt": Role.CONTROLLER,
    "session/set_config_option": Role.CONTROLLER,
    "session/set_mode": Role.CONTROLLER,
    "session/set_model": Role.CONTROLLER,
    "session/set_title": Role.CONTROLLER,
    "terminal/cancel": Role.CONTROLLER,
    "tool_call/cancel": Role.CONTROLLER,
    "_antiphon/annotate": Role.CONTROLLER,
    "_antiphon/answer": Role.CONTROLLER,
    "_antiphon/inject": Role.CONTROLLER,
    "_antiphon/move_inject": Role.CONTROLLER,
    "_antiphon/remove_annotation": Role.CONTROLLER,
    "_antiphon/replace_inject": Role.CONTROLLER,
    "_antiphon/resume_queue": Role.CONTROLLER,
    "_antiphon/revoke_inject": Role.CONTROLLER,
    EXTENSION: Role.CONTROLLER,
    CLOSE_FOR_ALL: Role.OWNER,
    "_antiphon/journal": Role.OWNER,
    "_antiphon/link": Role.OWNER,
    "auth/login": Role.OWNER,
    "auth/logout": Role.OWNER,
    "authenticate": Role.OWNER,
    "logout": Role.OWNER,
    "providers/disable": Role.OWNER,
    "providers/list": Role.OWNER,  # it tells addresses
    "providers/set": Role.OWNER,
    "proxy/initialize": Role.OWNER,
    "proxy/successor": Role.OWNER,
    "session/archive": Role.OWNER,  # work in it ends, for everybody
    "session/delete": Role.OWNER,
    "session/unarchive": Role.OWNER,
}

WITHOUT_SESSION = frozenset({"$/cancel_request", "initialize", "auth/status", "mcp/message", "session/list"})
"""What a client may do whose token is for some sessions only, beside what it does in these. `mcp/message`
reaches nothing but a request that this very client was asked."""


def needed(method: str) -> Role:
    known = NEEDS.get(method)
    if known is not None:
        return known
    foreign = method.startswith(EXTENSION) and not method.startswith("_antiphon/")
    return NEEDS[EXTENSION] if foreign else Role.OWNER


def may(role: Role, method: str) -> bool:
    return role.includes(needed(method))
