"""FaultLog: logs the first faults of a peer, and counts the others.

A peer that repeats a fault fifty thousand times must not fill the log.
"""

from __future__ import annotations

import logging

LOGGED_EACH = 10
"""Faults that get a log line each."""


class FaultLog:
    """The faults of one peer. Each log line begins with `about`, the kind of fault."""

    def __init__(self, logger: logging.Logger, about: str) -> None:
        self._logger = logger
        self._about = about
        self.count = 0

    def note(self, reason: str, *, level: int = logging.WARNING) -> bool:
        """Count a fault. Log the first ones, then the hundredth, thousandth and so on. Return whether this is
        one of the first."""
        self.count += 1
        if self.count <= LOGGED_EACH:
            self._logger.log(level, "%s: %s", self._about, reason)
            return True
        if self.count in _POWERS:
            self._logger.log(level, "%s: %d so far, the last: %s", self._about, self.count, reason)
        return False

    def sum_up(self) -> None:
        """Log the number of faults, if not each of them was logged."""
        if self.count > LOGGED_EACH:
            self._logger.warning("%s: %d in all", self._about, self.count)
        self.count = 0


_POWERS = frozenset(10**power for power in range(2, 16))
