"""Real agents, as the tests of the peers have them, and a NATS server, as those of the stores have it."""

from tests.peers.conftest import real_agent
from tests.stores.nats_fixture import nats

__all__ = ["nats", "real_agent"]
