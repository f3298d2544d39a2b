"""The runner: runs scenarios side by side, applies the rules to what they recorded, and collects verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Protocol

from msgspec import Struct

from antiphon.conformance.link import Link, NotSeen
from antiphon.conformance.options import Options
from antiphon.conformance.recording import Recording, Role
from antiphon.conformance.requirements import requirements
from antiphon.conformance.revisions import came_later
from antiphon.conformance.rules.rule import Finding, Rule, facts_of
from antiphon.conformance.scenario import ENDED, Decisions, Scenario
from antiphon.conformance.verdicts import Evidence, Outcome, Verdict, shortened
from antiphon.errors import AntiphonError

TRAFFIC = "traffic"
"""The scenario of a verdict that rules reached over all recordings."""


class Case(Protocol):
    """What a scenario is handed: the connections it opened are judged by rules afterwards."""

    links: list[Link]

    async def aclose(self) -> None: ...


class Progress(Protocol):
    """Reports the progress of a run to a person who waits."""

    def begin(self, scenario: Scenario, version: int) -> None: ...

    def end(self, scenario: Scenario, version: int, verdicts: Sequence[Verdict]) -> None: ...


class Outcomes(Struct):
    """What came of the scenarios of one version."""

    verdicts: list[Verdict]
    faults: list[str]


class Part(Struct, frozen=True):
    """The part of a recording that belongs to a scenario: it ends where the next part begins."""

    scenario: str
    recording: Recording
    first: int


class Findings:
    """The findings of rules over recordings. A requirement keeps its first failure, else its first pass."""

    def __init__(self, rules: Sequence[Rule], *, judged: Role, revision: str) -> None:
        self._rules = rules
        self._judged = judged
        self._revision = revision
        self._first: dict[tuple[str, int], tuple[str, Finding]] = {}

    def add(self, scenario: str, recording: Recording, *, parts: Sequence[Part] = ()) -> None:
        """Apply the rules to a recording of a scenario; `parts` are those of several that shared it."""
        facts = facts_of(recording, self._judged, revision=self._revision)
        if facts is None:
            return
        for rule in self._rules:
            if facts.version in rule.versions and self._judged in rule.parties:
                for finding in rule.find(recording, facts):
                    key = finding.requirement, facts.version
                    if key not in self._first or (self._first[key][1].ok and not finding.ok):
                        self._first[key] = _owner(finding, parts) or scenario, finding

    def verdicts(self, version: int) -> list[Verdict]:
        """Return a verdict for every requirement of the rules that apply to a version."""
        applying = [rule for rule in self._rules if version in rule.versions and self._judged in rule.parties]
        ids = dict.fromkeys(id for rule in applying for id in rule.requirements)
        return [self._verdict(id, version) for id in ids if version in requirements()[id].protocol_versions]

    def _verdict(self, id: str, version: int) -> Verdict:
        requirement = requirements()[id]
        later = came_later(id, self._revision) if version == 2 else None
        if later is not None:
            reason = Evidence(f"came with revision {later.since} of the draft")
            return Verdict(requirement, Outcome.NOT_APPLICABLE, TRAFFIC, version, reason)
        if (id, version) not in self._first:
            reason = Evidence("no frame of this kind was seen")
            return Verdict(requirement, Outcome.NOT_TESTED, TRAFFIC, version, reason)
        scenario, finding = self._first[id, version]
        if finding.ok:
            return Verdict(requirement, Outcome.PASS, TRAFFIC, version, Evidence(finding.expected))
        outcome = Outcome.FAIL if requirement.is_binding else Outcome.WARN
        return Verdict(
            requirement, outcome, scenario, version, Evidence(finding.expected, shortened(finding.frames))
        )


def _owner(finding: Finding, parts: Sequence[Part]) -> str:
    """Return the scenario in which the last frame of a finding was seen; empty if there is none."""
    last = finding.frames[-1].index if finding.frames else 0
    owners = [part.scenario for part in parts if part.first <= last]
    return owners[-1] if owners else ""


async def run_scenarios(
    scenarios: Iterable[Scenario],
    make_case: Callable[[Decisions], Case],
    findings: Findings,
    *,
    version: int,
    options: Options,
    turns: Mapping[str, asyncio.Lock] = {},
    progress: Progress | None = None,
) -> Outcomes:
    """Run scenarios of one version, `options.jobs` at a time. The verdicts are in the order of the scenarios.

    `turns`: locks by the name of a scenario. Scenarios with the same lock run one after the other, in order.
    """
    room = asyncio.Semaphore(options.jobs)
    ending = asyncio.Semaphore(options.jobs)
    """Room for scenarios whose connections are being closed: a peer may take seconds to end."""
    faults: list[str] = []

    async def run(scenario: Scenario) -> tuple[list[Verdict], list[Part]]:
        declared = scenario.declared(version)
        decisions = Decisions(scenario.name, declared, version=version, revision=options.revision)
        async with turns.get(scenario.name, nullcontext()):
            async with room:
                if progress is not None:
                    progress.begin(scenario, version)
                case = make_case(decisions)
                try:
                    fault = await _run(scenario, case, decisions, deadline=options.deadline)
                    if fault:
                        faults.append(f"{scenario.name} (v{version}): {fault}")
                    parts = [Part(scenario.name, link.recording, link.first) for link in case.links]
                    await ending.acquire()
                except BaseException:
                    await case.aclose()
                    raise
            try:
                await case.aclose()
            finally:
                ending.release()
            if progress is not None:
                progress.end(scenario, version, decisions.verdicts)
        return decisions.verdicts, parts

    chosen = [each for each in scenarios if version in each.versions and each.declared(version)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(scenario)) for scenario in chosen]
    verdicts: list[Verdict] = []
    parts: dict[int, list[Part]] = {}
    for task in tasks:
        found, recorded = task.result()
        verdicts += found
        for part in recorded:
            parts.setdefault(id(part.recording), []).append(part)
    for shared in parts.values():
        findings.add(shared[0].scenario, shared[0].recording, parts=shared)
    return Outcomes(verdicts + findings.verdicts(version), faults)


async def _run(scenario: Scenario, case: Case, decisions: Decisions, *, deadline: float) -> str:
    """Run a scenario to its end or its deadline. Return what is wrong with the judge, if it failed."""
    reason = ENDED
    fault = ""
    try:
        async with asyncio.timeout(deadline) as limit:
            await scenario.run(case)
    except (NotSeen, AntiphonError) as unseen:
        reason = str(unseen)
    except Exception as error:
        if isinstance(error, TimeoutError) and limit.expired():
            reason = f"the scenario took longer than {deadline:g} s"
        else:
            reason = fault = f"the judge failed: {type(error).__name__}: {error}"
    decisions.close(reason)
    return fault


def selected(
    scenarios: Iterable[Scenario], only: Sequence[str], rules: Iterable[Rule] = ()
) -> list[Scenario]:
    """Return the scenarios that `only` names: by their name, their area, or a requirement they decide.

    A requirement that rules alone decide names all scenarios: any traffic may show it. Raises `ValueError`
    for a word that names nothing.
    """
    by_rules = {id for rule in rules for id in rule.requirements}
    every = list(scenarios)
    if not only:
        return every
    chosen: dict[str, Scenario] = {}
    for word in only:
        named = [
            each for each in every
            if word == each.name or each.name.startswith(f"{word}/") or word in each.requirements
        ]  # fmt: skip
        if not named and word in by_rules:
            return every
        if not named:
            raise ValueError(f"no scenario, area or requirement that is decided here is named {word!r}")
        chosen.update({each.name: each for each in named})
    return [each for each in every if each.name in chosen]


def narrowed(verdicts: Iterable[Verdict], only: Sequence[str]) -> list[Verdict]:
    """Return the verdicts that `only` asks for.

    If it names requirements alone, those of these requirements; otherwise all but those that the traffic of
    the chosen scenarios did not show.
    """
    if only and all(word in requirements() for word in only):
        return [verdict for verdict in verdicts if verdict.requirement.id in only]
    return [
        verdict for verdict in verdicts
        if not only or verdict.scenario != TRAFFIC or verdict.outcome is not Outcome.NOT_TESTED
    ]  # fmt: skip
