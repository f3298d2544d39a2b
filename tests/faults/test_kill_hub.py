"""Six kills of `make faults`, in two runs; a seed that failed there can be put here."""

from __future__ import annotations

import pytest

from tests.faults.hub_run import run_hub

SEEDS = (1, 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_client_of_a_killed_hub_holds_what_the_store_has_and_nothing_twice(seed: int) -> None:
    print(run_hub(seed, kills=3))
