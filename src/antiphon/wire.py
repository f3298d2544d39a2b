"""The wire layer: connections, transports and frames, below `Agent` and `connect`.

The types of a protocol version are in `antiphon.schema.v1` and `antiphon.schema.v2`.
"""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.connection.connection import Connection, ConnectionOptions
    from antiphon.connection.initialization import Role
    from antiphon.connection.tap import Tap
    from antiphon.jsonrpc.frames import UNREADABLE, on_one_line
    from antiphon.jsonrpc.lines import Received
    from antiphon.jsonrpc.oversized import OversizedFrame, failure_of
    from antiphon.jsonrpc.peer import Inbound
    from antiphon.schema.version import Agreement, Dialect, Offer, OptIns
    from antiphon.transports.base import ADDRESSES, Receive, Transport
    from antiphon.transports.loop import run
    from antiphon.transports.memory import memory_pair
    from antiphon.transports.processes.child import ChildTransport
    from antiphon.transports.processes.environment import child_environment
    from antiphon.transports.replaceable import ReplaceableTransport
    from antiphon.transports.stdio import StdioTransport
    from antiphon.transports.websocket import connect_websocket

__all__ = [
    "ADDRESSES", "UNREADABLE", "Agreement", "ChildTransport", "Connection", "ConnectionOptions", "Dialect",
    "Inbound", "Offer", "OptIns", "OversizedFrame", "Receive", "Received", "ReplaceableTransport", "Role",
    "StdioTransport", "Tap", "Transport", "child_environment", "connect_websocket", "failure_of",
    "memory_pair", "on_one_line", "run",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "antiphon.connection.connection": ("Connection", "ConnectionOptions"),
    "antiphon.connection.initialization": ("Role",),
    "antiphon.connection.tap": ("Tap",),
    "antiphon.jsonrpc.frames": ("UNREADABLE", "on_one_line"),
    "antiphon.jsonrpc.lines": ("Received",),
    "antiphon.jsonrpc.oversized": ("OversizedFrame", "failure_of"),
    "antiphon.jsonrpc.peer": ("Inbound",),
    "antiphon.schema.version": ("Agreement", "Dialect", "Offer", "OptIns"),
    "antiphon.transports.base": ("ADDRESSES", "Receive", "Transport"),
    "antiphon.transports.replaceable": ("ReplaceableTransport",),
    "antiphon.transports.loop": ("run",),
    "antiphon.transports.memory": ("memory_pair",),
    "antiphon.transports.processes.child": ("ChildTransport",),
    "antiphon.transports.processes.environment": ("child_environment",),
    "antiphon.transports.stdio": ("StdioTransport",),
    "antiphon.transports.websocket": ("connect_websocket",),
})  # fmt: skip
