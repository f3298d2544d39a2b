"""Antiphon: the Python runtime for Agent Client Protocol sessions. One session, many voices.

The public names and nothing else. The types of a protocol version are in `antiphon.schema.v1` and
`antiphon.schema.v2`, and are loaded when that version is agreed.
"""

from antiphon.connection import Connection, Role
from antiphon.errors import (
    AntiphonError,
    CallFailed,
    LinkLost,
    LocalError,
    RemoteError,
    RequestError,
)
from antiphon.schema.version import Agreement, Dialect, OptIns
from antiphon.schema.wire import UNSET, Unknown, UnsetType

__all__ = [
    "UNSET",
    "Agreement",
    "AntiphonError",
    "CallFailed",
    "Connection",
    "Dialect",
    "LinkLost",
    "LocalError",
    "OptIns",
    "RemoteError",
    "RequestError",
    "Role",
    "Unknown",
    "UnsetType",
]
