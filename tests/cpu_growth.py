"""How CPU time grows with size: compared within one run, so that no machine is too slow for it."""

from __future__ import annotations

import time
from collections.abc import Callable


def assert_grows_in_proportion(act: Callable[[int], object], size: int, *, times: int = 10) -> None:
    """`act(times * size)` may take five times what `act(size)` lets expect; work in squares takes more."""
    small = min(_cpu(act, size) for _ in range(5))
    large = min(_cpu(act, times * size) for _ in range(2))
    assert large < 5 * times * small, f"{times} times the size took {large / small:.0f} times the CPU time"


def _cpu(act: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    act(size)
    return time.process_time() - began
