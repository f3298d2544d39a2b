"""Seeded faults of a busy cluster: `make faults-cluster`, or `python -m tests.cluster.campaign [--runs N]`.

Five clients, of v1, v2 and v2 as proposed, share two sessions over three hubs on three NATS servers. A run is
one seed, from which everything is drawn before it begins (`plan.py`). One fault follows another: hubs, NATS
servers and agents are killed, hubs are stopped and paused, cut off from NATS, and lose replies of other hubs.
After each fault everything is checked.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.cluster.cluster_run import ClusterRun, agent_command
from tests.cluster.plan import Plan, draw_plan
from tests.cluster.stand import LEASE, Stand
from tests.faults.violation import Violation

FAULTS = 200
IN_ONE_RUN = 10


@contextmanager
def explained(plan: Plan, stand: Stand) -> Iterator[None]:
    """Add to an error what was planned, how to do it again, and what the hubs logged."""
    again = f"python -m tests.cluster.campaign --seed {plan.seed} --runs {len(plan.rounds)}"

    def about() -> str:
        return f"in {stand.folder}; the same plan again: {again}\n{plan}\n{stand.complaints()}"

    try:
        yield
    except Violation as violation:
        raise Violation(f"{violation}\n{about()}") from None
    except Exception as error:
        error.add_note(about())
        raise


def run_cluster(plan: Plan) -> tuple[str, list[float]]:
    """Raises `Violation`, and keeps the folder then. Returns what happened and how long takeovers took."""
    folder = Path(tempfile.mkdtemp(prefix="antiphon-cluster-"))
    stand = Stand(folder, agent=agent_command(folder))
    played = ClusterRun(plan, stand)

    async def play() -> str:
        await stand.start()
        told = await played.play()
        await stand.stop()
        return told

    try:
        with explained(plan, stand):
            told = asyncio.run(play())
    finally:
        stand.clear()
    shutil.rmtree(folder)
    return told, played.takeovers


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=FAULTS, help="how many faults")
    parser.add_argument("--seed", type=int, help="the seed of the first run; by default one by chance")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    began, done, takeovers = time.monotonic(), 0, []
    while done < given.runs:
        faults = min(IN_ONE_RUN, given.runs - done)
        try:
            told, seconds = run_cluster(draw_plan(seed, faults))
        except Violation as violation:
            print(f"VIOLATION after {done} faults without one: {violation}")
            return 1
        done += faults
        takeovers += seconds
        print(f"{done}/{given.runs} seed {seed}: {told}", flush=True)
        seed += 1
    if takeovers:
        p50, most = median(takeovers), max(takeovers)
        print(f"{len(takeovers)} takeovers with a lease of {LEASE} s: p50 {p50:.1f} s, max {most:.1f} s")
    print(f"{given.runs} faults without a violation in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
