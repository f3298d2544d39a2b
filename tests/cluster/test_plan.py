"""The plan of a cluster campaign (`make faults-cluster`) is drawn from its seed alone."""

from __future__ import annotations

from tests.cluster.plan import draw_plan


def test_a_plan_of_fewer_faults_is_the_beginning_of_one_of_more() -> None:
    short, long = draw_plan(3, faults=2), draw_plan(3, faults=10)
    assert (short.hubs, short.rounds) == (long.hubs, long.rounds[:2])
    assert draw_plan(4, faults=2).rounds != short.rounds
