"""Transports: they move frames between two peers and know no method."""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.transports.address import ADDRESSES
    from antiphon.transports.base import Receive, Transport
    from antiphon.transports.lasting import LastingTransport
    from antiphon.transports.processes.environment import child_environment
    from antiphon.transports.stdio import StdioTransport
    from antiphon.transports.websocket import connect_websocket

__all__ = [
    "ADDRESSES", "LastingTransport", "Receive", "StdioTransport", "Transport", "child_environment",
    "connect_websocket",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "address": ("ADDRESSES",),
    "base": ("Receive", "Transport"),
    "lasting": ("LastingTransport",),
    "processes.environment": ("child_environment",),
    "stdio": ("StdioTransport",),
    "websocket": ("connect_websocket",),
})  # fmt: skip
