"""The NATS server that the tests of a module share. A `conftest.py` imports it where it is needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.stores.nats_servers import SERVER, one_server


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one server."""
    if SERVER is None:
        pytest.skip("nats-server is not installed")
    with one_server(tmp_path_factory.mktemp("nats")) as address:
        yield address
