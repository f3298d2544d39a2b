"""The NATS servers that tests of stores share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.stores.nats_fixture import nats as nats
from tests.stores.nats_servers import SERVER, NatsCluster, three_servers

from antiphon.stores import JetStreamOptions

MakeOptions = Callable[..., JetStreamOptions]


@pytest.fixture
def nats_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsCluster]:
    """Three servers, which a test may kill."""
    if SERVER is None:
        pytest.skip("nats-server is not installed")
    with three_servers(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def apart() -> MakeOptions:
    """Makes options of an installation that no other test uses."""
    numbers = itertools.count()

    def make(**options: Any) -> JetStreamOptions:
        return JetStreamOptions(name=f"test{next(numbers)}", shards=2, **options)

    return make
