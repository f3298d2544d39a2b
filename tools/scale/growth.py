"""What grows with what: an installation of any size, from the measured costs and the limits of NATS."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from tools.scale.costs import Costs


class Usage(NamedTuple):
    """How an installation is used."""

    open_share: float = 0.05
    """Sessions that have an agent at one time."""
    busy_share: float = 0.1
    """Open sessions that stream at one time."""
    clients_each: float = 2.0
    """Clients of an open session."""
    stray: float = 0.5
    """Clients that are not at the hub that owns their session."""
    events_each: int = 5000
    batch: int = 8
    """Events of an average message."""
    rate: float = 50.0
    """Chunks each second of a session that streams."""
    agent_memory: float = 150e6
    """Memory of an agent process."""
    host_memory: float = 64e9
    hub_core: float = 0.6
    """The share of its one core that a hub may be busy with on average."""


class Size(NamedTuple):
    """An installation, in numbers."""

    sessions: int
    open: int
    disk: float
    """Bytes on the disk of each server, with as many servers as replicas."""
    nats_heap: float
    consumers: int
    hubs: int
    hubs_by_memory: int
    hubs_by_cpu: int
    index_memory: float
    """In each hub."""
    index_load: float
    """Seconds of the first list of a hub."""
    restart: float
    """Seconds until a server that was killed is back."""
    renewals: float
    """Renewals of leases a second: each hub renews its own that often while its counts change."""


USUAL = Usage()


def event_disk(costs: Costs, batch: int) -> float:
    """Return the bytes of an event in messages of so many events."""
    alone, many = costs["event_disk_alone"], costs["event_disk_batched"]
    message = (alone - many) * 64 / 63
    return alone - message + message / batch


def size(sessions: int, costs: Costs, usage: Usage = USUAL) -> Size:
    opened = round(sessions * usage.open_share)
    busy = opened * usage.busy_share
    consumers = round(opened * usage.clients_each * usage.stray)
    by_memory = ceil(opened * (usage.agent_memory + costs["hub_session_memory"]) / usage.host_memory)
    chunk = costs["chunk_cpu"] + costs["append_alone_store_cpu"] + usage.clients_each * costs["delivery_cpu"]
    work = busy * usage.rate * chunk
    following = consumers * costs["consumer_idle_store_cpu"]
    followed = busy * usage.clients_each * usage.stray * usage.rate * costs["followed_cpu"]
    by_cpu = ceil((work + following + followed) / usage.hub_core)
    hubs = max(by_memory, by_cpu, 1)
    return Size(
        sessions,
        opened,
        sessions * (costs["session_disk"] + usage.events_each * event_disk(costs, usage.batch)),
        costs["server_heap"]
        + sessions * costs["session_heap"]
        + opened * costs["claim_heap"]
        + consumers * costs["consumer_heap"],
        consumers,
        hubs,
        by_memory,
        by_cpu,
        sessions * costs["index_memory"],
        sessions * costs["index_load"],
        sessions / 10_000 * costs["restart"],
        float(hubs),
    )
