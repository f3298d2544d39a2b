"""Each broken agent is failed for exactly its requirement, and the good one for none."""

from __future__ import annotations

import os

import pytest

from antiphon.conformance.agent.suite import check_agent
from antiphon.conformance.options import Options
from antiphon.conformance.runner import TRAFFIC
from antiphon.conformance.suites import suite
from antiphon.conformance.verdicts import Outcome
from tests.conformance.broken.defect import Defect
from tests.conformance.defect_table import NOTED, check_failed, defects_of
from tests.conformance.good.agent import GoodAgent
from tests.conformance.in_memory import agent_target

TIMEOUT = 2.0
EVERY = 1 if NOTED in os.environ else 4
"""Each fourth agent is judged by the whole suite, the others by the scenarios that decide their requirement,
unless rules decide it. `python -m tests.conformance.defect_table` judges all of them by all of it."""
DEFECTS = defects_of("agent")
SUITE = suite("agent")


@pytest.mark.parametrize("version", [1, 2])
async def test_the_good_agent_keeps_every_requirement(version: int) -> None:
    report = await check_agent(agent_target(GoodAgent), Options(timeout=TIMEOUT), versions=(version,))
    assert not report.faults
    assert [(each.requirement.id, each.evidence) for each in report.failures + report.warnings] == []
    assert report.of(Outcome.PASS)


@pytest.mark.parametrize(
    ("defect", "version"),
    [(each, version) for each in DEFECTS for version in each.versions],
    ids=[f"{each.name}-v{version}" for each in DEFECTS for version in each.versions],
)
async def test_a_broken_agent_is_failed_for_exactly_its_requirement(defect: Defect, version: int) -> None:
    by_rules = any(TRAFFIC in SUITE.deciding(id) for id in (defect.requirement, *defect.also))
    whole = by_rules or DEFECTS.index(defect) % EVERY == 0
    only = () if whole else (defect.requirement, *defect.also)
    options = Options(timeout=TIMEOUT, only=only, **defect.options)
    report = await check_agent(agent_target(defect.peer), options, versions=(version,))
    check_failed(defect, version, report)
