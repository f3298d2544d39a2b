"""Progress: one line for each scenario that has ended, with its time, to see what a run waits for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from antiphon.conformance import Scenario, Verdict


class Timed:
    """Prints the seconds and the outcomes of each scenario."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._began: dict[tuple[str, int], float] = {}

    def begin(self, scenario: Scenario, version: int) -> None:
        self._began[scenario.name, version] = time.monotonic()

    def end(self, scenario: Scenario, version: int, verdicts: Sequence[Verdict]) -> None:
        seconds = time.monotonic() - self._began.pop((scenario.name, version))
        outcomes = Counter(verdict.outcome.value for verdict in verdicts)
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        print(f"{seconds:6.1f} s  v{version}  {scenario.name}  {counts}", file=self._out, flush=True)
