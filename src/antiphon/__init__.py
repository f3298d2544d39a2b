"""Antiphon: the Python runtime for Agent Client Protocol sessions. One session, many voices.

The public names and nothing else, each loaded when it is asked for: `antiphon --help` needs no event loop, a
client no engine, and an agent in memory no database. The types of a protocol version are in
`antiphon.schema.v1` and `antiphon.schema.v2`, and are loaded when that version is agreed.
"""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.agent import Agent, AgentSession, AgentTurn
    from antiphon.client import START, Client, ClientSession, ClientTurn, Permissions, connect
    from antiphon.connection import Connection, Role
    from antiphon.errors import (
        AntiphonError,
        AuthRequired,
        CallFailed,
        LinkLost,
        LocalError,
        RemoteError,
        RequestError,
    )
    from antiphon.hub import Hub
    from antiphon.schema.version import Agreement, Dialect, OptIns
    from antiphon.schema.wire import UNSET, Unknown, UnsetType
    from antiphon.stores.memory import MemoryStore
    from antiphon.stores.sqlite.store import SQLiteStore

__getattr__ = lazy_names(__name__, {
    "agent": ("Agent", "AgentSession", "AgentTurn"),
    "client": ("START", "Client", "ClientSession", "ClientTurn", "Permissions", "connect"),
    "connection": ("Connection", "Role"),
    "errors": (
        "AntiphonError", "AuthRequired", "CallFailed", "LinkLost", "LocalError", "RemoteError",
        "RequestError",
    ),
    "hub": ("Hub",),
    "schema.version": ("Agreement", "Dialect", "OptIns"),
    "schema.wire": ("UNSET", "Unknown", "UnsetType"),
    "stores.memory": ("MemoryStore",),
    "stores.sqlite.store": ("SQLiteStore",),
})  # fmt: skip


__all__ = [
    "START",
    "UNSET",
    "Agent",
    "AgentSession",
    "AgentTurn",
    "Agreement",
    "AntiphonError",
    "AuthRequired",
    "CallFailed",
    "Client",
    "ClientSession",
    "ClientTurn",
    "Connection",
    "Dialect",
    "Hub",
    "LinkLost",
    "LocalError",
    "MemoryStore",
    "OptIns",
    "Permissions",
    "RemoteError",
    "RequestError",
    "Role",
    "SQLiteStore",
    "Unknown",
    "UnsetType",
    "connect",
]
