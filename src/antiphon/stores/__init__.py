"""Stores keep the journals of sessions and do not interpret events."""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.stores.base import (
        PAGE_BYTES,
        Batch,
        Listing,
        Page,
        Parts,
        RecordPatch,
        SessionRecord,
        Store,
    )
    from antiphon.stores.memory import MemoryStore
    from antiphon.stores.sqlite import SQLiteStore
    from antiphon.stores.sqlite_glance import glance

__all__ = [
    "PAGE_BYTES", "Batch", "Listing", "MemoryStore", "Page", "Parts", "RecordPatch", "SQLiteStore",
    "SessionRecord", "Store", "glance",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "base": ("PAGE_BYTES", "Batch", "Listing", "Page", "Parts", "RecordPatch", "SessionRecord",
        "Store"),
    "memory": ("MemoryStore",),
    "sqlite": ("SQLiteStore",),
    "sqlite_glance": ("glance",),
})  # fmt: skip
