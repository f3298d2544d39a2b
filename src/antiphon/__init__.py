"""Antiphon: the Python runtime for Agent Client Protocol sessions. One session, many voices.

This module has the names for agents, clients and hubs, and `check`, which judges agents. `antiphon.agent`,
`antiphon.client`, `antiphon.hub` and `antiphon.conformance` have more; `antiphon.wire` is for people who
build on the wire. The types of a protocol version are in `antiphon.schema.v1` and `antiphon.schema.v2`.

Each name is imported when it is used: `antiphon --help` needs no event loop, and a client needs no database.
"""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names
from antiphon.version import __version__

if TYPE_CHECKING:
    from antiphon.agent import Agent, AgentOptions, AgentSession, AgentTurn
    from antiphon.client import (
        START,
        Client,
        ClientOptions,
        ClientSession,
        ClientTurn,
        Permissions,
        ProcessOptions,
        Reconnect,
        Workspace,
        connect,
    )
    from antiphon.conformance import check
    from antiphon.errors import (
        AntiphonError,
        AuthRequired,
        CallFailed,
        InvalidParams,
        LinkLost,
        LocalError,
        RemoteError,
        RequestError,
    )
    from antiphon.hub import Access, AlertOptions, Hub, HubLimits, HubOptions, QuestionOptions
    from antiphon.stores import MemoryStore, SQLiteStore

__all__ = [
    "START", "Access", "Agent", "AgentOptions", "AgentSession", "AgentTurn", "AlertOptions",
    "AntiphonError", "AuthRequired", "CallFailed", "Client", "ClientOptions", "ClientSession", "ClientTurn",
    "Hub", "HubLimits", "HubOptions", "InvalidParams", "LinkLost", "LocalError", "MemoryStore", "Permissions",
    "ProcessOptions", "QuestionOptions", "Reconnect", "RemoteError", "RequestError", "SQLiteStore",
    "Workspace", "__version__", "check", "connect",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "agent": ("Agent", "AgentOptions", "AgentSession", "AgentTurn"),
    "client": (
        "START", "Client", "ClientOptions", "ClientSession", "ClientTurn", "Permissions", "ProcessOptions",
        "Reconnect", "Workspace", "connect",
    ),
    "conformance": ("check",),
    "errors": (
        "AntiphonError", "AuthRequired", "CallFailed", "InvalidParams", "LinkLost", "LocalError",
        "RemoteError", "RequestError",
    ),
    "hub": ("Access", "AlertOptions", "Hub", "HubLimits", "HubOptions", "QuestionOptions"),
    "stores": ("MemoryStore", "SQLiteStore"),
})  # fmt: skip
