"""Stores: they keep the journals of sessions and know nothing of what an event says."""

from typing import TYPE_CHECKING, Any

from antiphon.stores.base import Batch, Listing, Page, Parts, RecordPatch, SessionRecord, Store
from antiphon.stores.memory import MemoryStore

if TYPE_CHECKING:
    from antiphon.stores.sqlite import SQLiteStore

__all__ = [
    "Batch", "Listing", "MemoryStore", "Page", "Parts", "RecordPatch", "SQLiteStore", "SessionRecord",
    "Store",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # sqlite3 is loaded by those who use it: an agent that keeps its sessions in memory starts without.
    if name == "SQLiteStore":
        from antiphon.stores.sqlite import SQLiteStore

        return SQLiteStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
