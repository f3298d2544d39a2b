"""Every request is answered once, whatever it races with: `make races`, or `python -m tests.races.campaign`.

A race is one seed, and its schedule is printed when something that was promised does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import time

from tests.races.checks import Violation
from tests.races.run import race
from tests.races.schedule import schedule

RUNS = 2000


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, help="the seed of the first race; by default one by chance")
    parser.add_argument("--all", action="store_true", help="go on after a violation, and count them")
    given = parser.parse_args()
    logging.getLogger("antiphon").propagate = False
    first = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    began, broken = time.monotonic(), 0
    for number in range(given.runs):
        try:
            asyncio.run(race(schedule(first + number)))
        except Violation as violation:
            print(f"VIOLATION: {violation}\n", flush=True)
            broken += 1
            if not given.all:
                return 1
        if (number + 1) % 100 == 0:
            print(f"{number + 1}/{given.runs} races, up to seed {first + number}", flush=True)
    print(f"{given.runs} races, {broken} violations, {time.monotonic() - began:.0f} s")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
