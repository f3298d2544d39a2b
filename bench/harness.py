"""How every benchmark group is run, told and kept: side by side, alternating, median and spread.

A group is a list of measurements (each runs once per round, one after the other) and a list of ratios
between them. A ratio is taken within each round, so that what the machine does at the time weighs on both
sides; the median over the rounds is reported with its spread. A figure is a measurement with its own bar.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


class Unavailable(Exception):
    """Something cannot be measured on this machine; the message says why."""


@dataclass(frozen=True)
class Measurement:
    name: str
    unit: str
    measure: Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Barred:
    """What a number has to be: `at_least` or `at_most` (neither: only reported)."""

    at_least: float | None = None
    at_most: float | None = None

    def bar(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else ""

    def met(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (
            self.at_most is None or value <= self.at_most
        )


@dataclass(frozen=True)
class Ratio(Barred):
    """`ours` over `theirs`."""

    key: str
    ours: str
    theirs: str

    @property
    def parts(self) -> tuple[str, ...]:
        return self.ours, self.theirs

    def of(self, values: Mapping[str, Sequence[float]]) -> list[float]:
        pairs = zip(values[self.ours], values[self.theirs], strict=False)
        return [ours / theirs for ours, theirs in pairs]


@dataclass(frozen=True)
class Figure(Barred):
    """A measurement as it is, in its unit."""

    key: str
    measurement: str

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.measurement,)

    def of(self, values: Mapping[str, Sequence[float]]) -> list[float]:
        return list(values[self.measurement])


@dataclass(frozen=True)
class Worst(Barred):
    """The one of several ratios that is furthest from the bar: the lowest, or the highest with `at_most`."""

    key: str
    ratios: Sequence[Ratio]

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(part for ratio in self.ratios for part in ratio.parts)

    def of(self, values: Mapping[str, Sequence[float]]) -> list[float]:
        found = [ratio.of(values) for ratio in self.ratios]
        if not all(found):
            return []
        return (min if self.at_most is None else max)(found, key=statistics.median)


def run_group(
    group: str,
    measurements: Sequence[Measurement],
    ratios: Sequence[Ratio | Figure | Worst],
    *,
    rounds: int,
) -> dict[str, float | None]:
    """Measure, print the tables, write `bench/results/GROUP.json`; returns the ratios and figures."""
    values: dict[str, list[float]] = {measurement.name: [] for measurement in measurements}
    missing: dict[str, str] = {}
    began = time.monotonic()
    for number in range(1, rounds + 1):
        for measurement in measurements:
            if measurement.name in missing:
                continue
            try:
                values[measurement.name].append(measurement.measure())
            except Unavailable as reason:
                missing[measurement.name] = str(reason)
        print(f"round {number} of {rounds}, {time.monotonic() - began:.0f} s", flush=True)

    print(f"\n{'measurement':36} {'median':>12}  {'spread':>25}  unit")
    for measurement in measurements:
        found = values[measurement.name]
        if not found:
            print(f"{measurement.name:36} {'—':>12}  {missing[measurement.name]}")
            continue
        spread = f"{min(found):,.4g} … {max(found):,.4g}"
        print(f"{measurement.name:36} {statistics.median(found):>12,.5g}  {spread:>25}  {measurement.unit}")

    print(f"\n{'ratio':36} {'median':>12}  {'spread':>25}  bar")
    medians: dict[str, float | None] = {}
    for ratio in ratios:
        found = ratio.of(values)
        if not found:
            medians[ratio.key] = None
            print(
                f"{ratio.key:36} {'—':>12}  {next(missing[part] for part in ratio.parts if part in missing)}"
            )
            continue
        value = medians[ratio.key] = statistics.median(found)
        spread = f"{min(found):.3g} … {max(found):.3g}"
        verdict = "" if not ratio.bar() else "met" if ratio.met(value) else "MISSED"
        print(f"{ratio.key:36} {value:>12.3g}  {spread:>25}  {ratio.bar():8} {verdict}")

    RESULTS.mkdir(exist_ok=True)
    kept = {
        "group": group,
        "rounds": rounds,
        "ratios": medians,
        "measurements": {
            measurement.name: {"unit": measurement.unit, "values": values[measurement.name]}
            for measurement in measurements
        },
        "unavailable": missing,
    }
    path = RESULTS / f"{group}.json"
    path.write_text(json.dumps(kept, indent=2) + "\n")
    print(f"\nwritten to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return medians
