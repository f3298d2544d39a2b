"""JSON-RPC 2.0 without I/O and without ACP: frames, lines, and the peer that keeps both id spaces."""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.jsonrpc.frames import UNREADABLE, on_one_line
    from antiphon.jsonrpc.lines import Received
    from antiphon.jsonrpc.oversized import Overlong, failure_of

__all__ = [
    "UNREADABLE", "Overlong", "Received", "failure_of", "on_one_line",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "frames": ("UNREADABLE", "on_one_line"),
    "lines": ("Received",),
    "oversized": ("Overlong", "failure_of"),
})  # fmt: skip
