"""Antiphon: the Python runtime for Agent Client Protocol sessions. One session, many voices.

The public names and nothing else. The types of a protocol version are in `antiphon.schema.v1` and
`antiphon.schema.v2`, and are loaded when that version is agreed.
"""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from antiphon.agent import Agent, AgentSession, AgentTurn
    from antiphon.stores.memory import MemoryStore
    from antiphon.stores.sqlite import SQLiteStore

_LATER = {
    "Agent": "antiphon.agent",
    "AgentSession": "antiphon.agent",
    "AgentTurn": "antiphon.agent",
    "MemoryStore": "antiphon.stores.memory",
    "SQLiteStore": "antiphon.stores.sqlite",
}
"""What is loaded when it is asked for: a client needs no engine, and an agent in memory no database."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)


__all__ = [
    "UNSET",
    "Agent",
    "AgentSession",
    "AgentTurn",
    "Agreement",
    "AntiphonError",
    "AuthRequired",
    "CallFailed",
    "Connection",
    "Dialect",
    "LinkLost",
    "LocalError",
    "MemoryStore",
    "OptIns",
    "RemoteError",
    "RequestError",
    "Role",
    "SQLiteStore",
    "Unknown",
    "UnsetType",
]
