"""Fan-out: sessions at many hubs, each of which writes to its clients; and the consumers that this needs."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import NamedTuple

from tools.scale.costs import Costs


class Load(NamedTuple):
    """What one session with many clients costs each second, at the hub with the most of its clients."""

    clients: int
    hub_cores: float
    hub_bytes: float
    nats_bytes: float
    """Bytes that the servers send to hubs that follow."""


def one_session(costs: Costs, *, clients: int, hubs: int, rate: float, random: Random) -> Load:
    """Spread clients over hubs at random. The agent streams `rate` chunks a second. Each is a batch of its
    own, and its message has about as many bytes as on disk."""
    at = Counter(random.randrange(hubs) for _ in range(clients))
    following = sum(1 for hub in at if hub != 0)  # hub 0 owns the session
    most = max(at.values())
    chunk = costs["chunk_cpu"] + max(costs["append_alone_store_cpu"], costs["followed_cpu"])
    return Load(
        most,
        rate * (chunk + most * costs["delivery_cpu"]),
        rate * most * costs["delivery_bytes"],
        rate * following * costs["event_disk_alone"],
    )


class Following(NamedTuple):
    """What following costs while nothing happens."""

    consumers: int
    nats_cores: float
    hub_cores: float
    """At an average hub."""


def followed(
    costs: Costs, *, sessions: int, clients_each: float, hubs: int, stray: float, random: Random
) -> Following:
    """Count the consumers: one for each session and hub that has clients of it and does not own it.

    stray: the share of clients that a balancer sends to any hub; the others come to the owner.
    """
    pairs = 0
    for _ in range(sessions):
        clients = 1 + _more(clients_each - 1, random)
        reached = {random.randrange(hubs) for _ in range(clients) if random.random() < stray}
        pairs += len(reached - {0})
    return Following(
        pairs,
        pairs * costs["consumer_idle_server_cpu"],
        pairs * costs["consumer_idle_store_cpu"] / hubs,
    )


def _more(mean: float, random: Random) -> int:
    """Return a number with this mean: each further client comes with the same chance."""
    count = 0
    while random.random() < mean / (1 + mean):
        count += 1
    return count
