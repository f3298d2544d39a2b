"""kill -9 of a busy hub: a part of `make faults`, or `python -m tests.faults.hub_campaign [--kills N]`.

A run is one seed and one data folder, in which the hub is killed several times and started again. Five
clients, of v1, v2 and v2 as proposed, share two sessions, whose agents are spoken to in v1 and in v2: they
prompt, cancel and answer, come and go, and come back by themselves from their cursors; now and then the
agents are killed too. At last all comes to rest, and what each client was told and holds is held against the
store, and what its prompts came to against the notes of the agents.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.faults.hub_run import run_hub
from tests.faults.violation import Violation

KILLS = 300
IN_ONE_RUN = 15


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, help="the seed of the first run; by default one by chance")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    began, killed = time.monotonic(), 0
    while killed < given.kills:
        kills = min(IN_ONE_RUN, given.kills - killed)
        try:
            told = run_hub(seed, kills)
        except Violation as violation:
            print(f"VIOLATION after {killed} kills without one, {violation}")
            return 1
        killed += kills
        print(f"{killed}/{given.kills} seed {seed}: {told}", flush=True)
        seed += 1
    print(f"{given.kills} kills of the hub without a violation in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
