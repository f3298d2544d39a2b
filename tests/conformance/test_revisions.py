"""The revisions of the v2 draft: a peer of an older one is never failed for what came later."""

from __future__ import annotations

import pytest

from antiphon.conformance.agent.suite import check_agent
from antiphon.conformance.options import Options
from antiphon.conformance.prompts import Prompts
from antiphon.conformance.requirements import requirements
from antiphon.conformance.revisions import PINNED, REVISIONS, came_later, differences, has
from antiphon.conformance.verdicts import Outcome, Report
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.older import AlphaFiveAgent, AlphaTenAgent
from tests.conformance.in_memory import agent_target

OLDER = [("alpha.5", AlphaFiveAgent), ("alpha.10", AlphaTenAgent)]
OPTIONS = Options(timeout=2.0, prompts=Prompts(failure="Fail"))


async def judged(agent: type[GoodAgent], revision: str) -> Report:
    options = Options(timeout=OPTIONS.timeout, prompts=OPTIONS.prompts, revision=revision)
    report = await check_agent(agent_target(agent), options, versions=(2,))
    assert not report.faults
    return report


def broken(report: Report) -> set[str]:
    return {verdict.requirement.id for verdict in (*report.failures, *report.warnings)}


@pytest.mark.parametrize(("revision", "agent"), OLDER)
async def test_an_older_agent_is_not_failed_for_what_came_later(
    revision: str, agent: type[GoodAgent]
) -> None:
    report = await judged(agent, revision)
    assert [(each.requirement.id, each.evidence) for each in report.failures + report.warnings] == []
    assert len(report.of(Outcome.PASS)) > 20


@pytest.mark.parametrize(("revision", "agent"), OLDER)
async def test_by_the_newest_revision_an_older_agent_is_failed_for_the_differences_only(
    revision: str, agent: type[GoodAgent]
) -> None:
    found = broken(await judged(agent, PINNED))
    assert len(found) > 5
    assert {id for id in found if came_later(id, revision) is None} == set()


async def test_the_good_agent_keeps_the_older_revisions_too() -> None:
    for revision in REVISIONS:
        assert broken(await judged(GoodAgent, revision)) == set()


async def test_a_later_requirement_is_not_applicable_and_says_since_when() -> None:
    report = await judged(GoodAgent, "alpha.5")
    verdict = report.by_requirement()["SESS-21", 2]
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert verdict.evidence.expected == "came with revision alpha.10 of the draft"


async def test_version_1_has_no_revisions() -> None:
    options = Options(timeout=2.0, revision="alpha.5")
    report = await check_agent(agent_target(GoodAgent), options, versions=(1,))
    assert not any("revision" in each.evidence.expected for each in report.of(Outcome.NOT_APPLICABLE))


def test_every_difference_names_known_requirements_and_a_source() -> None:
    for difference in differences().values():
        assert difference.since in REVISIONS
        assert difference.text.endswith(".")
        assert difference.source
        for id in difference.requirements.split():
            assert "v2" in requirements()[id].versions or requirements()[id].versions in ("unst", "seed")


def test_a_requirement_came_with_one_difference() -> None:
    ids = [id for difference in differences().values() for id in difference.requirements.split()]
    assert len(ids) == len(set(ids))


def test_a_revision_has_what_came_with_it_and_before() -> None:
    assert [has(revision, "resume-state") for revision in REVISIONS] == [False, True, True]
