"""Antiphon: the Python runtime for Agent Client Protocol sessions. One session, many voices.

The public names and nothing else, each loaded when it is asked for: `antiphon --help` needs no event loop, a
client no engine, and an agent in memory no database. The types of a protocol version are in
`antiphon.schema.v1` and `antiphon.schema.v2`, and are loaded when that version is agreed.
"""

from typing import TYPE_CHECKING, Any

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
    from antiphon.schema.version import Agreement, Dialect, OptIns
    from antiphon.schema.wire import UNSET, Unknown, UnsetType
    from antiphon.stores.memory import MemoryStore
    from antiphon.stores.sqlite import SQLiteStore

_WHERE = {
    "antiphon.agent": ("Agent", "AgentSession", "AgentTurn"),
    "antiphon.client": ("START", "Client", "ClientSession", "ClientTurn", "Permissions", "connect"),
    "antiphon.connection": ("Connection", "Role"),
    "antiphon.errors": (
        "AntiphonError", "AuthRequired", "CallFailed", "LinkLost", "LocalError", "RemoteError",
        "RequestError",
    ),
    "antiphon.schema.version": ("Agreement", "Dialect", "OptIns"),
    "antiphon.schema.wire": ("UNSET", "Unknown", "UnsetType"),
    "antiphon.stores.memory": ("MemoryStore",),
    "antiphon.stores.sqlite": ("SQLiteStore",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _WHERE.items():
        if name in names:
            from importlib import import_module

            found = globals()[name] = getattr(import_module(module), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
