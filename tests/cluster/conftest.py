"""The cluster that the tests share: what a test breaks is mended before the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.stand import LEASE, Stand
from tests.stores.nats_fixture import nats as nats
from tests.stores.nats_servers import SERVER


@contextmanager
def running_stand(folder: Path, *, agent: Sequence[str] = (), lease: int = LEASE) -> Iterator[Stand]:
    if SERVER is None:
        pytest.skip("nats-server is not installed")
    stand = Stand(folder, agent=agent, lease=lease)
    try:
        asyncio.run(stand.start())
        yield stand
        asyncio.run(stand.stop())
    finally:
        stand.clear()


@pytest.fixture(scope="session")
def started_stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with running_stand(tmp_path_factory.mktemp("stand")) as stand:
        yield stand


@pytest.fixture
def stand(started_stand: Stand) -> Iterator[Stand]:
    """Three hubs on three NATS servers, all of them at work."""
    yield started_stand
    asyncio.run(started_stand.heal())
    assert "Traceback" not in started_stand.complaints(), started_stand.complaints()


@pytest.fixture
def patient_stand(tmp_path: Path) -> Iterator[Stand]:
    """A cluster in which a lease lasts longer than NATS needs to choose another leader."""
    with running_stand(tmp_path, lease=20) as stand:
        yield stand
        assert "Traceback" not in stand.complaints(), stand.complaints()
