"""kill -9 at random points of a busy run: `make faults`, or `python -m tests.faults.campaign [--runs N]`.

A run is one seed. Its clients, of v1 or v2, prompt an agent, inject, edit, move and withdraw, come and go; at
a point that the seed decides the agent's process is killed, once or again after its return. Then the store,
and what the next process replays, are held against everything the clients ever saw and were told. At last
what was not answered is asked again, with its operation ids, and the work is finished: nothing may be missing
or there twice.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.faults.run import run
from tests.faults.violation import Violation

RUNS = 200


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, help="the seed of the first run; by default one by chance")
    given = parser.parse_args()
    first = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    began = time.monotonic()
    for number in range(given.runs):
        try:
            told = run(first + number)
        except Violation as violation:
            print(f"VIOLATION after {number} good runs, {violation}")
            return 1
        print(f"{number + 1}/{given.runs} seed {first + number}: {told}", flush=True)
    print(f"{given.runs} runs without a violation in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
