"""A discrete simulation: processes that wait for time, for a place in a queue, or for their share of cores.

A process is a generator. It yields the seconds that it waits, or something that admits it when its turn has
come. Nothing here is random, and processes that are due at one moment run in the order in which they became
due: the same processes give the same run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from heapq import heappop, heappush
from itertools import count
from typing import Protocol


class Wait(Protocol):
    def admit(self, process: Process) -> None:
        """Continue the process when its wait is over."""


Process = Generator[float | Wait, None, None]


class Simulation:
    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Process]] = []
        self._numbers = count()

    def begin(self, process: Process, *, after: float = 0.0) -> None:
        """Run a process up to its next wait, in so many seconds."""
        heappush(self._due, (self.now + after, next(self._numbers), process))

    def run(self) -> None:
        """Run until no process is left."""
        while self._due:
            self.now, _, process = heappop(self._due)
            wait = next(process, None)
            if isinstance(wait, int | float):
                self.begin(process, after=wait)
            elif wait is not None:
                wait.admit(process)


class Places:
    """A number of places, given in the order of asking. Whoever has one gives it back with `leave`."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        self._simulation = simulation
        self._free = number
        self._queues: tuple[deque[Process], deque[Process]] = (deque(), deque())
        self.first = First(self)
        """Waits for a place before all who do not wait like this."""

    def admit(self, process: Process, *, first: bool = False) -> None:
        if self._free:
            self._free -= 1
            self._simulation.begin(process)
        else:
            self._queues[not first].append(process)

    def leave(self) -> None:
        for queue in self._queues:
            if queue:
                self._simulation.begin(queue.popleft())
                return
        self._free += 1


class First:
    def __init__(self, places: Places) -> None:
        self._places = places

    def admit(self, process: Process) -> None:
        self._places.admit(process, first=True)


class Cores:
    """Cores that all tasks share equally, as in an operating system. A task uses one core at most."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        self.number = number
        self.busiest = 0
        """The most tasks at one time."""
        self.used = 0.0
        """Core seconds of work."""
        self._simulation = simulation
        self._tasks: list[tuple[float, int, Process]] = []
        self._numbers = count()
        self._done = 0.0
        """Seconds of work that each task since the beginning would have got."""
        self._at = 0.0
        self._plan = 0

    def work(self, seconds: float) -> Work:
        return Work(self, seconds)

    def _rate(self) -> float:
        return min(1.0, self.number / len(self._tasks)) if self._tasks else 0.0

    def _advance(self) -> None:
        self._done += (self._simulation.now - self._at) * self._rate()
        self._at = self._simulation.now

    def add(self, seconds: float, process: Process) -> None:
        self._advance()
        self.used += seconds
        heappush(self._tasks, (self._done + seconds, next(self._numbers), process))
        self.busiest = max(self.busiest, len(self._tasks))
        self._replan()

    def _replan(self) -> None:
        """Wake up when the next task ends. Whatever changes the share of the tasks makes a new plan."""
        self._plan += 1
        if self._tasks:
            left = max(0.0, self._tasks[0][0] - self._done)
            self._simulation.begin(self._end(self._plan, left / self._rate()))

    def _end(self, plan: int, after: float) -> Process:
        yield after
        if plan == self._plan:
            self._advance()
            self._done = max(self._done, self._tasks[0][0])
            self._simulation.begin(heappop(self._tasks)[2])
            self._replan()


class Work:
    """Work for one core of some cores."""

    def __init__(self, cores: Cores, seconds: float) -> None:
        self._cores = cores
        self._seconds = seconds

    def admit(self, process: Process) -> None:
        self._cores.add(self._seconds, process)
