"""Four of the runs of `make faults`; a seed that failed there can be put here."""

from __future__ import annotations

import pytest

from tests.faults.run import run

SEEDS = range(1, 5)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_client_saw_outlives_a_killed_agent_and_nothing_is_there_twice(seed: int) -> None:
    print(run(seed))
