"""FaultLog: what one peer does wrong is told in the log a few times, and counted from there on.

A peer that repeats a mistake fifty thousand times must neither fill the log nor spend our time on it.
"""

from __future__ import annotations

import logging

TOLD = 10
"""How many faults of a kind are told each by itself."""


class FaultLog:
    """The faults of one peer. `about` begins each line, and says what kind of fault it is."""

    def __init__(self, logger: logging.Logger, about: str) -> None:
        self._logger = logger
        self._about = about
        self.count = 0

    def note(self, reason: str, *, level: int = logging.WARNING) -> bool:
        """Count a fault. The first ones are told, and then every tenth, hundredth, thousandth power; whether
        this one was told by itself."""
        self.count += 1
        if self.count <= TOLD:
            self._logger.log(level, "%s: %s", self._about, reason)
            return True
        if self.count in _POWERS:
            self._logger.log(level, "%s: %d so far, the last: %s", self._about, self.count, reason)
        return False

    def sum_up(self) -> None:
        """The peer is gone: say how many there were, if not all were told."""
        if self.count > TOLD:
            self._logger.warning("%s: %d in all", self._about, self.count)
        self.count = 0


_POWERS = frozenset(10**power for power in range(2, 16))
