"""Real agents, as the tests of the peers have them."""

from tests.peers.conftest import real_agent

__all__ = ["real_agent"]
