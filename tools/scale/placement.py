"""Which hub gets a new session, and how evenly sessions are spread then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random
from statistics import mean

PROJECTS = 500
"""Projects that sessions belong to. The n-th largest has 1/n as many sessions as the largest."""
SNAPSHOTS = 20

Policy = Callable[[Sequence[int], int, Random], int]
"""Chooses a hub: from the open sessions of each hub and the project of the session."""


def at_random(load: Sequence[int], project: int, random: Random) -> int:
    return random.randrange(len(load))


def of_two(load: Sequence[int], project: int, random: Random) -> int:
    one, other = random.randrange(len(load)), random.randrange(len(load))
    return one if load[one] <= load[other] else other


def least(load: Sequence[int], project: int, random: Random) -> int:
    return min(range(len(load)), key=load.__getitem__)


def by_label(load: Sequence[int], project: int, random: Random) -> int:
    """The hub that has the working directory: projects are dealt out to hubs one by one."""
    return project % len(load)


POLICIES: dict[str, Policy] = {
    "by label: where the directory is": by_label,
    "a hub at random": at_random,
    "the emptier of two at random": of_two,
    "the emptiest": least,
}


def fullest(policy: Policy, *, sessions: int, hubs: int, random: Random) -> tuple[float, list[int]]:
    """Open sessions until `sessions` are open on average, each for a random time, and go on for as many.

    Returns the sessions of the fullest hub over those of an average one, as the mean of some moments of the
    second half, and the sessions of each hub at the end.
    """
    projects = random.choices(range(PROJECTS), weights=[1 / (n + 1) for n in range(PROJECTS)], k=4 * sessions)
    load = [0] * hubs
    ends: list[tuple[float, int]] = []
    ratios = []
    for number, project in enumerate(projects):  # one arrives in each unit of time
        while ends and ends[0][0] <= number:
            load[heappop(ends)[1]] -= 1
        hub = policy(load, project, random)
        load[hub] += 1
        heappush(ends, (number + random.expovariate(1 / sessions), hub))
        if number >= 2 * sessions and number % max(1, 2 * sessions // SNAPSHOTS) == 0:
            ratios.append(max(load) / mean(load))
    return mean(ratios), load
