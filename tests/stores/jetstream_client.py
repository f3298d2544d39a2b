"""A plain client of NATS servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.js import JetStreamContext


@asynccontextmanager
async def jetstream(address: str) -> AsyncIterator[JetStreamContext]:
    """A plain client of the servers."""
    connection = Client()
    await connection.connect(servers=address.split(","))
    try:
        yield connection.jetstream()
    finally:
        await connection.close()
