"""Progress: which scenario runs, for a person who waits. On stderr, so that stdout is the report alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from antiphon.cli.output.streams import SafeStream
from antiphon.conformance import Outcome, Scenario, Verdict


class LineProgress:
    """One line for each scenario that has ended: for logs."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def begin(self, scenario: Scenario, version: int) -> None:
        pass

    def end(self, scenario: Scenario, version: int, verdicts: Sequence[Verdict]) -> None:
        self._out.write(f"v{version}  {scenario.name}  {_summary(verdicts)}\n")
        self._out.flush()

    def finish(self) -> None:
        pass


class LiveProgress:
    """One line that changes: for a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out.stream if isinstance(out, SafeStream) else out
        self._running: list[str] = []
        self._ended = 0
        self._broken = 0

    def begin(self, scenario: Scenario, version: int) -> None:
        self._running.append(f"{scenario.name} (v{version})")
        self._show()

    def end(self, scenario: Scenario, version: int, verdicts: Sequence[Verdict]) -> None:
        self._running.remove(f"{scenario.name} (v{version})")
        self._ended += 1
        self._broken += sum(verdict.outcome is Outcome.FAIL for verdict in verdicts)
        self._show()

    def finish(self) -> None:
        self._out.write("\r\x1b[K")
        self._out.flush()

    def _show(self) -> None:
        broken = f", {self._broken} fail" if self._broken else ""
        oldest = f"  {self._running[0]}" if self._running else ""
        width = os.get_terminal_size(self._out.fileno()).columns - 1
        self._out.write(f"\r{f'{self._ended} scenarios{broken}{oldest}'[:width]}\x1b[K")
        self._out.flush()


def make_progress() -> LineProgress | LiveProgress:
    """Return the progress that fits stderr."""
    live = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return LiveProgress(sys.stderr) if live else LineProgress(sys.stderr)


def _summary(verdicts: Sequence[Verdict]) -> str:
    outcomes = [verdict.outcome for verdict in verdicts]
    counts = [f"{outcomes.count(outcome)} {outcome.value}" for outcome in Outcome if outcome in outcomes]
    broken = [each.requirement.id for each in verdicts if each.outcome in (Outcome.FAIL, Outcome.WARN)]
    return f"{', '.join(counts)}{f': {chr(32).join(broken)}' if broken else ''}"
