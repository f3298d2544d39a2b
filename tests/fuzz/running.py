"""One target, run for a time or a number of inputs; a crash leaves its input in a file.

A crash is any exception of a check, a check over its deadline, or memory that grows over a bound.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import mmap
import os
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from tests.fuzz.mutation import LARGEST, inputs

TARGETS = ("lines", "codec", "bridge", "http", "websocket", "journal", "imports")
FOUND = Path(__file__).parents[2] / ".cache" / "fuzz"
DEADLINE = 10.0
"""Seconds of one check."""
STUCK = 300.0
"""Seconds after which a batch that cannot even be interrupted ends the process."""
GROWTH = 192 * 1024 * 1024
"""Bytes by which the process may grow after its first inputs."""
BATCH = 200

Check = Callable[[bytes], str]


class Broken(AssertionError):
    """A promise that an input broke."""


@dataclass
class Tally:
    executions: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        rate = self.executions / self.seconds if self.seconds else 0.0
        return f"{self.executions} executions, {rate:.0f}/s, {len(self.outcomes)} outcomes"


@dataclass
class Crash(Exception):
    target: str
    data: bytes
    error: BaseException

    def __str__(self) -> str:
        return f"{self.target}: {type(self.error).__name__}: {self.error}"


def target(name: str) -> Any:
    return importlib.import_module(f"tests.fuzz.{name}")


@contextlib.contextmanager
def deadline(seconds: float = DEADLINE) -> Iterator[None]:
    """Raise `Broken` in this block when it takes longer."""

    def late(number: int, frame: FrameType | None) -> None:
        raise Broken(f"a check took more than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Current:
    """The input that is being checked, in a file that outlives whatever it does to the process."""

    def __init__(self, name: str) -> None:
        FOUND.mkdir(parents=True, exist_ok=True)
        self.path = FOUND / f"{name}.{os.getpid()}.current"
        self._file = open(self.path, "w+b")  # noqa: SIM115  # it is open as long as this object
        self._file.truncate(8 + LARGEST)
        self._map = mmap.mmap(self._file.fileno(), 8 + LARGEST)

    def keep(self, data: bytes) -> None:
        kept = data[:LARGEST]
        self._map[:8] = len(kept).to_bytes(8)
        self._map[8 : 8 + len(kept)] = kept

    def close(self) -> None:
        self._map.close()
        self._file.close()
        self.path.unlink()


def current_input(path: Path) -> bytes:
    """What a `.current` file holds."""
    kept = path.read_bytes()
    return kept[8 : 8 + int.from_bytes(kept[:8])]


def resident() -> int:
    """Bytes of memory that the process has just now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def explore(name: str, check: Check, tally: Tally, *, examples: int, number: int) -> None:
    """Check so many inputs, those of a seed. Raises `Crash`, with the smallest input that was found."""
    made = target(name)
    failed: list[tuple[bytes, BaseException]] = []

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
    )
    @given(inputs(made.SEEDS, made.WORDS))
    def run(data: bytes) -> None:
        began = time.process_time()
        try:
            with deadline():
                outcome = check(data)
        except Exception as error:
            failed.append((data, error))
            raise
        finally:
            tally.executions += 1
            tally.seconds += time.process_time() - began
        tally.outcomes[outcome] += 1

    try:
        run()
    except BaseException as error:
        if not failed:
            raise
        data, cause = failed[-1]  # Hypothesis ends with the smallest
        raise Crash(name, data, cause) from error


def fuzz(name: str, *, cpu_seconds: float, number: int, told: Callable[[Tally], None]) -> Tally:
    """Check inputs of one target for so much CPU time. Raises `Crash`."""
    made, tally = target(name), Tally()
    with warnings.catch_warnings(), contextlib.closing(Current(name)) as current, made.opened() as opened:
        warnings.simplefilter("ignore")

        def check(data: bytes) -> str:
            current.keep(data)
            return str(opened(data))

        for data in made.SEEDS:
            check(data)
        began, before, shown = time.process_time(), 0, 0.0
        while (spent := time.process_time() - began) < cpu_seconds:
            faulthandler.dump_traceback_later(STUCK, exit=True, file=sys.__stderr__)
            explore(name, check, tally, examples=BATCH, number=number)
            faulthandler.cancel_dump_traceback_later()
            number += 1
            held = resident()
            if tally.executions < 5 * BATCH or not before:
                before = held
            elif held > before + GROWTH:
                grown = (held - before) >> 20
                raise Crash(name, b"", Broken(f"memory grew by {grown} MiB in {tally.executions} executions"))
            if spent - shown > 10:
                shown = spent
                told(tally)
    return tally
