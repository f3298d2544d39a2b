"""Judge one peer several times, if asked under CPU load, and compare the verdicts."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from antiphon.conformance import Outcome, Report

BUSY = 4
"""Processes that do nothing but take time."""
Key = tuple[str, str, int]


def verdicts_of(report: Report) -> dict[Key, Outcome]:
    """Return every verdict by scenario, requirement and version."""
    return {
        (each.scenario, each.requirement.id, each.version): each.outcome
        for each in report.verdicts
    }  # fmt: skip


def differences(runs: Sequence[dict[Key, Outcome]]) -> dict[Key, Counter[str]]:
    """Return the verdicts that are not the same in all runs, with how often each outcome came."""
    keys = dict.fromkeys(key for run in runs for key in run)
    counted = {key: Counter(str(run.get(key, "missing")) for run in runs) for key in keys}
    return {key: outcomes for key, outcomes in counted.items() if len(outcomes) > 1}


@contextmanager
def busy_processors(count: int) -> Iterator[None]:
    """Keep the processors busy with `count` processes of usual priority."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
