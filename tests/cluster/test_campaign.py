"""Ten faults of `make faults-cluster`, each of another kind, in two runs with fewer prompts; a seed that
failed there can be put here."""

from __future__ import annotations

import pytest

from tests.cluster.campaign import run_cluster
from tests.cluster.plan import Fault, draw_plan
from tests.stores.nats_servers import SERVER

SEEDS = (1312, 2998)
FAULTS = 5
STEPS = (1, 2)


@pytest.mark.skipif(SERVER is None, reason="nats-server is not installed")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_broken_cluster_loses_nothing_and_doubles_nothing(seed: int) -> None:
    told, takeovers = run_cluster(draw_plan(seed, FAULTS, steps=STEPS))
    print(told, "takeovers:", [f"{seconds:.1f} s" for seconds in takeovers])


def test_the_runs_have_ten_faults_of_ten_kinds() -> None:
    plans = [draw_plan(seed, FAULTS, steps=STEPS) for seed in SEEDS]
    kinds = {round.fault for plan in plans for round in plan.rounds}
    assert len(kinds) == FAULTS * len(SEEDS)
    assert kinds >= {Fault.KILL_OWNER, Fault.KILL_NATS, Fault.KILL_LEADER, Fault.PAUSE_OWNER_LONG}
