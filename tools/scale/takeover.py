"""A takeover storm: a hub with many sessions dies, and the others take them over.

The lease of the dead hub ends some time after its death. Clients of some sessions come to other hubs, which
take those sessions over when the lease has ended; a sweep may find the others. A takeover looks who owns
the session, claims it, opens it from its snapshot and starts its agent. If two hubs claim a session, the
server lets one of them have it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from random import Random
from typing import NamedTuple

from tools.scale.clockwork import Cores, Places, Process, Simulation, Wait
from tools.scale.costs import Costs

LOOKS_PER_CLAIM = 6
"""Requests of a claim: the end of the journal twice, the claim, the lease, and the two writes."""


class Storm(NamedTuple):
    """What dies, and how the others take over."""

    sessions: int = 1000
    survivors: int = 4
    cores: int = 8
    """Cores of each hub's host."""
    nats_cores: int = 12
    """Cores of all NATS servers."""
    lease: float = 10.0
    sweep: float = 2.0
    """Seconds between two looks of a hub for sessions without an owner."""
    jitter: bool = True
    """Each hub looks at its own moment and in its own order; otherwise all at once and in the same order."""
    only_clients: bool = False
    """Take over the sessions whose clients are back; the others have no owner until they are needed."""
    parallel: int | None = 8
    """Takeovers that a hub has under way at most; `None` for no bound."""
    waited_for: float = 0.2
    """The share of sessions whose clients come back at once."""
    return_within: float = 5.0
    """Seconds within which they do."""
    agent_cpu: float = 0.5
    """Core seconds that an agent needs to start."""
    start_all: bool = True
    """Start the agents of all sessions; otherwise only of those whose clients are back."""
    clients_first: bool = True
    """Take over the sessions whose clients are back before those that a sweep has found."""


class Outcome(NamedTuple):
    storm: Storm
    owners: dict[int, int]
    """The hubs that have the sessions."""
    ready: dict[int, float]
    """Seconds from the death until a session is ready."""
    waited_for: frozenset[int]
    """The sessions whose clients came back."""
    claimed: int
    refused: int
    """Claims that another hub was faster with."""
    idle_looks: int
    """Looks at sessions that another hub had already."""
    starting: int
    """The most agents that one hub started at a time."""

    def within(self, percent: int) -> float:
        """Return the seconds after which so many of the sessions are back that are taken over."""
        return _within(percent, self.ready.values())

    def clients_within(self, percent: int) -> float:
        """Return the same for the sessions whose clients came back."""
        return _within(percent, [self.ready[session] for session in self.waited_for])

    @property
    def slowdown(self) -> float:
        """How much slower a hub's own work gets while agents start on its host."""
        return max(1.0, (self.starting + 1) / self.storm.cores)


class Hub:
    """A hub that survives."""

    def __init__(self, simulation: Simulation, storm: Storm) -> None:
        self.cores = Cores(simulation, storm.cores)
        self.loop = Places(simulation, 1)
        self.places = Places(simulation, storm.parallel or storm.sessions)
        self.tried: set[int] = set()


class Run:
    def __init__(self, storm: Storm, costs: Costs, random: Random) -> None:
        self._storm = storm
        self._random = random
        self._simulation = Simulation()
        self._nats = Cores(self._simulation, storm.nats_cores)
        self._hubs = [Hub(self._simulation, storm) for _ in range(storm.survivors)]
        waited_for = round(storm.waited_for * storm.sessions)
        self._waited_for = frozenset(random.sample(range(storm.sessions), waited_for))
        self._owners: dict[int, int] = {}
        self._ready: dict[int, float] = {}
        self._claimed = self._refused = self._idle_looks = 0
        self._claim_cpu = costs["r3_takeover_server_cpu"]
        self._claim_wait = max(0.0, costs["r3_takeover"] - self._claim_cpu)
        self._open_cpu = costs["open_20000_cpu"]
        # Renewed every third of the lease; the death is at any moment between two renewals.
        self._lease_ends = storm.lease - random.uniform(0, storm.lease / 3)

    def run(self) -> Outcome:
        storm, random = self._storm, self._random
        for session in sorted(self._waited_for):
            comes = random.uniform(0, storm.return_within)
            asked = self._asked(random.randrange(storm.survivors), session)
            looks = random.uniform(0, storm.sweep) if storm.jitter else 0.0
            self._simulation.begin(asked, after=max(comes, self._lease_ends) + looks)
        for number in range(storm.survivors):
            looks = random.uniform(0, storm.sweep) if storm.jitter else 0.0
            if not storm.only_clients:
                self._simulation.begin(self._sweep(number, self._lease_ends + looks))
        self._simulation.run()
        return Outcome(
            storm,
            self._owners,
            self._ready,
            self._waited_for,
            self._claimed,
            self._refused,
            self._idle_looks,
            max(hub.cores.busiest for hub in self._hubs),
        )

    def _asked(self, number: int, session: int) -> Process:
        """A client needs its session at this hub."""
        if session not in self._owners:
            yield from self._take_over(number, session, first=self._storm.clients_first)

    def _sweep(self, number: int, after: float) -> Process:
        """Take over what the dead hub had, as many at once as the bound allows."""
        yield after
        order = list(range(self._storm.sessions))
        if self._storm.jitter:
            self._random.shuffle(order)
        for session in order:
            self._simulation.begin(self._take_over(number, session))

    def _take_over(self, number: int, session: int, *, first: bool = False) -> Process:
        hub = self._hubs[number]
        yield hub.places.first if first else hub.places
        known = session in hub.tried
        hub.tried.add(session)
        if not known and (yield from self._won(number, session)):
            yield hub.loop
            yield hub.cores.work(self._open_cpu)
            hub.loop.leave()
            if self._storm.start_all or session in self._waited_for:
                yield hub.cores.work(self._storm.agent_cpu)
            self._ready[session] = self._simulation.now
        hub.places.leave()

    def _won(self, number: int, session: int) -> Generator[float | Wait, None, bool]:
        """Look who owns the session, and claim it. Returns whether this hub has it."""
        yield self._claim_wait / LOOKS_PER_CLAIM
        yield self._nats.work(self._claim_cpu / LOOKS_PER_CLAIM)
        if session in self._owners:
            self._idle_looks += 1
            return False
        yield self._claim_wait * self._random.uniform(0.5, 1.5)  # who is first is chance
        yield self._nats.work(self._claim_cpu)
        if session in self._owners:
            self._refused += 1
            return False
        self._owners[session] = number
        self._claimed += 1
        return True


def _within(percent: int, ready: Iterable[float]) -> float:
    times = sorted(ready)
    return times[max(0, -(-percent * len(times) // 100) - 1)]


def storm_outcome(storm: Storm, costs: Costs, *, seed: int) -> Outcome:
    return Run(storm, costs, Random(seed)).run()
