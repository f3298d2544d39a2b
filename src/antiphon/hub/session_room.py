"""SessionRoom: how many sessions a hub has open at a time, whichever way they are opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from antiphon.hub.access.limits import limited


class SessionRoom:
    """`most` sessions may be open; `opened` counts those that are."""

    def __init__(self, most: int, opened: Callable[[], int]) -> None:
        self._most = most
        self._opened = opened
        self._opening = 0
        """Sessions that are about to be open: requests that come at once must not pass the limit together."""

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Hold a place while a session is made, or is read from the store. Raises `RequestError`."""
        if self._opened() + self._opening >= self._most:
            raise limited("sessions", f"{self._most} sessions are open, which is the limit of this hub")
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1
