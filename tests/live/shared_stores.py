"""Two stores that share their sessions, as those of two processes: one that writes, one that reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon.stores import JetStreamStore, MemoryStore, SQLiteStore, Store

KINDS = ["memory", "sqlite", "jetstream"]


@asynccontextmanager
async def two_stores(
    kind: str, folder: Path, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[Store, Store]]:
    if kind == "memory":
        store = MemoryStore()
        yield store, store
    elif kind == "sqlite":
        one, other = SQLiteStore(folder / "s.db"), SQLiteStore(folder / "s.db")
        yield one, other
        await other.aclose()
        await one.aclose()
    else:
        address, options = request.getfixturevalue("nats"), request.getfixturevalue("apart")()
        async with JetStreamStore(address, options) as first, JetStreamStore(address, options) as second:
            yield first, second
