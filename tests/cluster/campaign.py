"""Seeded faults of a busy cluster: `make faults-cluster`, or `python -m tests.cluster.campaign [--runs N]`.

Five clients, of v1, v2 and v2 as proposed, share two sessions over three hubs on three NATS servers. A run is
one seed, in which one fault follows another: hubs, NATS servers and agents are killed, hubs are stopped and
paused, cut off from NATS, and lose replies of other hubs. After each fault everything is checked.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.cluster.cluster_run import ClusterRun, agent_command
from tests.cluster.stand import LEASE, Stand
from tests.faults.violation import Violation

FAULTS = 200
IN_ONE_RUN = 10


def run_cluster(seed: int, faults: int) -> tuple[str, list[float]]:
    """Raises `Violation`, with the seed, what the hubs logged, and the folder, which is kept then. Returns
    what happened, and the seconds of each takeover."""
    folder = Path(tempfile.mkdtemp(prefix="antiphon-cluster-"))
    stand = Stand(folder, agent=agent_command(folder))
    told, takeovers = "", []

    async def play() -> None:
        nonlocal told, takeovers
        await stand.start()
        played = ClusterRun(seed, stand)
        told, takeovers = await played.play(faults), played.takeovers
        await stand.stop()

    try:
        asyncio.run(play())
    except Violation as violation:
        raise Violation(f"seed {seed}: {violation}\nkept in {folder}\n{stand.complaints()}") from None
    except Exception as error:
        error.add_note(f"in the run of seed {seed}, kept in {folder}\n{stand.complaints()}")
        raise
    finally:
        stand.clear()
    shutil.rmtree(folder)
    return told, takeovers


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
            told, seconds = run_cluster(seed, faults)
        except Violation as violation:
            print(f"VIOLATION after {done} faults without one, {violation}")
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
