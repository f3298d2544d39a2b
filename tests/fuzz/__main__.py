"""`make fuzz MINUTES=n`, or `python -m tests.fuzz --minutes N [--target T] [--seed S]`.

Divides CPU minutes among the targets, and runs as many of them at a time as there are processors. Those that
speak to sockets wait most of the time, so several processes share the minutes of each, beside the others. A
crash writes its input to a file, says how to run it again, and ends its process; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import os
import random
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.running import FOUND, TARGETS, Crash, Tally, current_input, fuzz, target

WAITING = ("http", "websocket")
TOGETHER = 6
"""Processes of each target that waits for a hub to be silent."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="of CPU time, for all targets together")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, help="of the first inputs; by default one by chance")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="targets at a time")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="check this input of one target")
    given = parser.parse_args()
    names: list[str] = given.target or list(TARGETS)
    if given.replay is not None:
        return replay(names, given.replay)
    number = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    if len(names) > 1:
        print(f"seed {number}: {given.minutes:g} CPU minutes for {', '.join(names)}", flush=True)
    if len(names) == 1:
        return run_one(names[0], given.minutes, number)
    share = given.minutes / len(names)
    waiting = [name for name in names if name in WAITING for _ in range(TOGETHER)]
    computing = [name for name in names if name not in WAITING]
    with ThreadPoolExecutor(len(waiting) or 1) as beside, ThreadPoolExecutor(given.jobs) as jobs:
        parts = [
            beside.submit(run_apart, name, share / TOGETHER, number + part)
            for part, name in enumerate(waiting)
        ]
        parts += [jobs.submit(run_apart, name, share, number) for name in computing]
        codes = [part.result() for part in parts]
    crashed = sorted({name for name, code in zip([*waiting, *computing], codes, strict=True) if code})
    print(f"crashed: {', '.join(crashed)}" if crashed else f"no crash in {given.minutes:g} CPU minutes")
    return 1 if crashed else 0


def run_apart(name: str, minutes: float, number: int) -> int:
    """Run one target in a process of its own."""
    command = [sys.executable, "-m", "tests.fuzz", "--target", name]
    return subprocess.run(
        [*command, "--minutes", f"{minutes}", "--seed", f"{number}"], check=False
    ).returncode


def run_one(name: str, minutes: float, number: int) -> int:
    def told(tally: Tally) -> None:
        print(f"  {name}: {tally}", flush=True)

    try:
        done = fuzz(name, cpu_seconds=60 * minutes, number=number, told=told)
    except Crash as crash:
        report(crash)
        return 1
    common = ", ".join(f"{outcome} {count}" for outcome, count in done.outcomes.most_common(6))
    print(f"{name}: no crash: {done}: {common}", flush=True)
    return 0


def report(crash: Crash) -> None:
    FOUND.mkdir(parents=True, exist_ok=True)
    path = FOUND / f"{crash.target}-{hashlib.sha256(crash.data).hexdigest()[:12]}"
    path.write_bytes(crash.data)
    traceback.print_exception(crash.error)
    print(f"CRASH in {crash}\ninput of {len(crash.data)} bytes: {path}")
    print(f"run it again: python -m tests.fuzz --target {crash.target} --replay {path}")


def replay(names: list[str], path: Path) -> int:
    """Check one input; a `.current` file is what a process was at when it died."""
    if len(names) != 1:
        print("--replay needs the --target of the input", file=sys.stderr)
        return 2
    data = current_input(path) if path.suffix == ".current" else path.read_bytes()
    with target(names[0]).opened() as check:
        print(check(data))
    return 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
