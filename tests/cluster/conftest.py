"""The cluster that the tests share: what a test breaks is mended before the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.cluster.stand import Stand
from tests.stores.nats_servers import SERVER


@pytest.fixture(scope="session")
def started_stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    if SERVER is None:
        pytest.skip("nats-server is not installed")
    stand = Stand(tmp_path_factory.mktemp("stand"))
    try:
        asyncio.run(stand.start())
        yield stand
        asyncio.run(stand.stop())
    finally:
        stand.clear()


@pytest.fixture
def stand(started_stand: Stand) -> Iterator[Stand]:
    """Three hubs on three NATS servers, all of them at work."""
    yield started_stand
    asyncio.run(started_stand.heal())
    assert "Traceback" not in started_stand.complaints(), started_stand.complaints()
