"""Scenarios: scripted exchanges with a peer, and the checks that they make."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from msgspec import Struct

from antiphon.conformance.link import NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.requirements import requirements
from antiphon.conformance.revisions import came_later, differences, has
from antiphon.conformance.verdicts import Evidence, Outcome, Verdict, shortened

ENDED = "the scenario ended before this check"
"""Why a requirement has no verdict if a scenario says nothing else."""


class Decisions:
    """The verdicts of one scenario. Only requirements that the scenario declared may be decided."""

    def __init__(self, scenario: str, declared: Iterable[str], *, version: int, revision: str) -> None:
        self.scenario = scenario
        self._open = dict.fromkeys(declared)
        """Declared requirements without a verdict so far, in order."""
        self._declared = frozenset(self._open)
        self._version = version
        self._revision = revision
        self._failed: set[str] = set()
        self.verdicts: list[Verdict] = []

    def check(
        self, requirement: str, ok: bool, expected: str, *frames: RecordedFrame, since: str = ""
    ) -> bool:
        """Decide a requirement. `expected` is one sentence, and `frames` are the proof.

        An older peer is not judged by a requirement that came with a later revision, nor by a check of a part
        that did: `since` names the difference of `revisions.tsv`. A requirement that is checked several times
        keeps its first failure, else its first verdict.
        """
        later = None if self._version == 1 else came_later(requirement, self._revision)
        difference = differences()[since] if since and not self.has(since) else later
        if difference is not None:
            self.not_applicable(requirement, f"came with revision {difference.since} of the draft")
            return True
        if ok:
            outcome = Outcome.PASS
        else:
            outcome = Outcome.FAIL if requirements()[requirement].is_binding else Outcome.WARN
        self._decide(requirement, outcome, Evidence(expected, shortened(frames)))
        return ok

    def has(self, difference: str) -> bool:
        """Whether the peer is expected to know a difference of `revisions.tsv`. They concern v2 only."""
        return self._version == 1 or has(self._revision, difference)

    def not_applicable(self, requirement: str, reason: str) -> None:
        """Say that the peer does not offer what the requirement is about."""
        self._decide(requirement, Outcome.NOT_APPLICABLE, Evidence(reason))

    def not_tested(self, requirement: str, reason: str) -> None:
        """Say that the judge could not bring the situation about."""
        self._decide(requirement, Outcome.NOT_TESTED, Evidence(reason))

    def need(self, ok: bool, reason: str) -> None:
        """End the scenario here unless `ok`: what is undecided is not tested, for this reason."""
        if not ok:
            raise NotSeen(reason)

    def applies(self, ok: bool, reason: str, *only: str) -> None:
        """End the scenario here unless `ok`: the peer does not offer what it is about.

        The requirements without a verdict do not apply, or `only` some of them; the others are not tested.
        """
        if not ok:
            for requirement in only or tuple(self._open):
                self.not_applicable(requirement, reason)
            raise NotSeen(ENDED)

    def close(self, reason: str) -> None:
        """Record that the requirements without a verdict were not tested."""
        for requirement in list(self._open):
            self.not_tested(requirement, reason)

    def _decide(self, requirement: str, outcome: Outcome, evidence: Evidence) -> None:
        if requirement not in self._declared:
            raise ValueError(f"scenario {self.scenario} decides {requirement} without declaring it")
        first = requirement in self._open
        self._open.pop(requirement, None)
        failed = outcome in (Outcome.FAIL, Outcome.WARN)
        if first or (failed and requirement not in self._failed):
            if failed:
                self._failed.add(requirement)
                self.verdicts = [each for each in self.verdicts if each.requirement.id != requirement]
            row = requirements()[requirement]
            self.verdicts.append(Verdict(row, outcome, self.scenario, self._version, evidence))


class Scenario(Struct, frozen=True):
    """One scripted exchange.

    `name` is unique and readable: area and behaviour. `requirements` are those it may decide. `run` is handed
    the case of its party (`AgentCase`, `ClientCase`, `HubCase`).
    """

    name: str
    summary: str
    requirements: tuple[str, ...]
    versions: tuple[int, ...]
    run: Callable[[Any], Awaitable[None]]
    shares: bool = False
    """Whether it may use a connection that other scenarios used, and leaves it to them."""

    def declared(self, version: int) -> tuple[str, ...]:
        """Return the requirements that apply to a version."""
        return tuple(id for id in self.requirements if version in requirements()[id].protocol_versions)


class Collection:
    """The scenarios of one module, in the order in which they are written.

    scenarios = Collection("cancel")

    @scenarios.add("PROMPT-V1-14", versions=(1,))
    async def cancel_before_the_first_update(case: AgentCase) -> None:
        \"""A turn that is cancelled at once ends as cancelled.\"""
    """

    def __init__(self, area: str, *, shares: bool = False) -> None:
        """`shares`: whether the scenarios share connections, unless one says otherwise."""
        self._area = area
        self._shares = shares
        self.all: list[Scenario] = []

    def add(
        self, *ids: str, versions: tuple[int, ...] = (1, 2), shares: bool | None = None
    ) -> Callable[[Callable[[Any], Awaitable[None]]], Callable[[Any], Awaitable[None]]]:
        """Register a scenario. Its name is the area and the name of the function."""

        def register(run: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
            name = f"{self._area}/{run.__name__.replace('_', '-')}"
            summary = (run.__doc__ or "").strip().splitlines()[0]
            sharing = self._shares if shares is None else shares
            self.all.append(Scenario(name, summary, ids, versions, run, sharing))
            return run

        return register
