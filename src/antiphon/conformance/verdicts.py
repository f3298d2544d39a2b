"""Verdicts: what the judge found out about each requirement, with the frames that prove it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.requirements import Requirement, requirements

MOST_FRAMES = 12
"""Frames of one piece of evidence. The first and the last are kept."""


class Outcome(StrEnum):
    """The result of a check. The order is that of their weight in a summary, heaviest first."""

    FAIL = "fail"
    """The peer broke a MUST."""
    WARN = "warn"
    """The peer broke a SHOULD."""
    PASS = "pass"
    NOT_APPLICABLE = "not applicable"
    """The peer lacks the capability, or the rule came with a later revision."""
    NOT_TESTED = "not tested"
    """The judge could not bring the situation about."""


_WEIGHT = {outcome: weight for weight, outcome in enumerate(Outcome)}


class Evidence(Struct, frozen=True):
    """Why a verdict is what it is. `frames` are in the order in which the judge saw them."""

    expected: str
    """One sentence: what the requirement expects here; for a verdict that decides nothing, the reason."""
    frames: tuple[RecordedFrame, ...] = ()


class Verdict(Struct, frozen=True):
    """The result of one requirement in one scenario."""

    requirement: Requirement
    outcome: Outcome
    scenario: str
    version: int
    evidence: Evidence


class Report(Struct, frozen=True):
    """All verdicts about one peer. `party` is what the peer was judged as."""

    party: str
    target: str
    verdicts: tuple[Verdict, ...]
    revision: str = ""
    faults: tuple[str, ...] = ()
    """Defects of the judge itself: scenarios that raised. Never empty by accident."""

    @property
    def versions(self) -> tuple[int, ...]:
        """The protocol versions that were judged."""
        return tuple(sorted({verdict.version for verdict in self.verdicts}))

    @property
    def failures(self) -> tuple[Verdict, ...]:
        return self.of(Outcome.FAIL)

    @property
    def warnings(self) -> tuple[Verdict, ...]:
        return self.of(Outcome.WARN)

    def of(self, outcome: Outcome) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.outcome is outcome)

    def counts(self) -> dict[Outcome, int]:
        """Count the requirements by their heaviest verdict. Each version counts."""
        found = [verdict.outcome for verdict in self.by_requirement().values()]
        return {outcome: found.count(outcome) for outcome in Outcome}

    def by_requirement(self) -> dict[tuple[str, int], Verdict]:
        """Return the heaviest verdict of each requirement and version, in the order of the catalogue."""
        heaviest: dict[tuple[str, int], Verdict] = {}
        for verdict in self.verdicts:
            key = verdict.requirement.id, verdict.version
            known = heaviest.get(key)
            if known is None or _WEIGHT[verdict.outcome] < _WEIGHT[known.outcome]:
                heaviest[key] = verdict
        place = {id: number for number, id in enumerate(requirements())}
        return dict(sorted(heaviest.items(), key=lambda item: (item[0][1], place[item[0][0]])))


def shortened(frames: Iterable[RecordedFrame]) -> tuple[RecordedFrame, ...]:
    """Return at most `MOST_FRAMES` distinct frames in their order."""
    ordered: Sequence[RecordedFrame] = sorted(set(frames), key=lambda frame: (frame.at, frame.index))
    if len(ordered) > MOST_FRAMES:
        half = MOST_FRAMES // 2
        ordered = [*ordered[:half], *ordered[-half:]]
    return tuple(ordered)
