"""Roles: the role and the audit name of each method. A method that is not listed is for owners alone."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    OBSERVER = "observer"
    """Lists, replays and follows sessions. Gets no questions."""
    CONTROLLER = "controller"
    """May also prompt, cancel, answer and configure."""
    OWNER = "owner"
    """May also delete, close for all clients, log agents in and out, and set their model providers."""

    METRICS = "metrics"
    """Reads `/metrics` and nothing else."""

    def includes(self, other: Role) -> bool:
        return self in RANKS and other in RANKS and RANKS.index(self) >= RANKS.index(other)


RANKS = (Role.OBSERVER, Role.CONTROLLER, Role.OWNER)
"""The roles of clients in ascending order. Each includes the roles before it."""

CLOSE_FOR_ALL = "session/close for all"
"""`session/close` with `_meta["antiphon"].forAll`. Without it the client only detaches."""
EXTENSION = "_"
"""The prefix of extension methods. Only client and agent know what those of others do."""

NEEDS: dict[str, Role] = {
    "$/cancel_request": Role.OBSERVER,  # only affects the client's own requests
    "initialize": Role.OBSERVER,
    "auth/status": Role.OBSERVER,
    "session/list": Role.OBSERVER,
    "session/load": Role.OBSERVER,
    "session/resume": Role.OBSERVER,
    "session/status": Role.OBSERVER,
    "session/close": Role.OBSERVER,  # an observer only detaches
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
    "providers/list": Role.OWNER,  # it shows addresses
    "providers/set": Role.OWNER,
    "proxy/initialize": Role.OWNER,
    "proxy/successor": Role.OWNER,
    "session/archive": Role.OWNER,  # ends its work for all clients
    "session/delete": Role.OWNER,
    "session/unarchive": Role.OWNER,
}

WITHOUT_SESSION = frozenset({"$/cancel_request", "initialize", "auth/status", "mcp/message", "session/list"})
"""Methods without a session id that a client with a token for some sessions may call. `mcp/message` only
reaches a request that this client was asked."""


ACTS = {
    "session/prompt": "prompt",
    "_antiphon/inject": "prompt",
    "_antiphon/replace_inject": "prompt",
    "session/cancel": "cancel",
    "tool_call/cancel": "cancel",
    "terminal/cancel": "cancel",
    "_antiphon/revoke_inject": "cancel",
    "_antiphon/answer": "answer",
    "_antiphon/annotate": "annotate",
    "_antiphon/remove_annotation": "annotate",
    "session/set_config_option": "config",
    "session/set_mode": "config",
    "session/set_model": "config",
    "session/set_title": "config",
    "_antiphon/move_inject": "config",
    "_antiphon/resume_queue": "config",
    "providers/set": "config",
    "providers/disable": "config",
    "session/new": "create",
    "session/fork": "create",
    "_antiphon/journal": "export",
    "_antiphon/link": "link",
    "session/close": "close",
    CLOSE_FOR_ALL: "close",
    "session/archive": "archive",
    "session/unarchive": "archive",
    "session/delete": "delete",
    "auth/login": "login",
    "authenticate": "login",
    "auth/logout": "login",
    "logout": "login",
}
"""The name of each method in the audit log. Other methods are `read`, or `call` for extension methods."""
PROMPTS = frozenset({"session/prompt", "_antiphon/inject", "_antiphon/replace_inject"})
"""Methods that count against `HubLimits.prompts_per_minute`."""


def needed(method: str) -> Role:
    """Return the least role that may call a method."""
    known = NEEDS.get(method)
    if known is not None:
        return known
    foreign = method.startswith(EXTENSION) and not method.startswith("_antiphon/")
    return NEEDS[EXTENSION] if foreign else Role.OWNER


def may(role: Role, method: str) -> bool:
    return role.includes(needed(method))
