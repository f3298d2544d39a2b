"""Stores keep the journals of sessions. Only their search interprets events."""

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
        all_records,
    )
    from antiphon.stores.jetstream.layout import JetStreamOptions
    from antiphon.stores.jetstream.store import JetStreamStore
    from antiphon.stores.memory import MemoryStore
    from antiphon.stores.search.base import Match, Matches, MatchKind, Searches
    from antiphon.stores.shared import Claim, Owner, Peer, SharedStore, StreamStatus
    from antiphon.stores.sqlite.glance import glance
    from antiphon.stores.sqlite.store import SQLiteStore

__all__ = [
    "PAGE_BYTES", "Batch", "Claim", "JetStreamOptions", "JetStreamStore", "Listing", "Match", "MatchKind",
    "Matches", "MemoryStore", "Owner", "Page", "Parts", "Peer", "RecordPatch", "SQLiteStore", "Searches",
    "SessionRecord", "SharedStore", "Store", "StreamStatus", "all_records", "glance",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "base": ("PAGE_BYTES", "Batch", "Listing", "Page", "Parts", "RecordPatch", "SessionRecord",
        "Store", "all_records"),
    "jetstream.layout": ("JetStreamOptions",),
    "jetstream.store": ("JetStreamStore",),
    "memory": ("MemoryStore",),
    "search.base": ("Match", "MatchKind", "Matches", "Searches"),
    "shared": ("Claim", "Owner", "Peer", "SharedStore", "StreamStatus"),
    "sqlite.store": ("SQLiteStore",),
    "sqlite.glance": ("glance",),
})  # fmt: skip
