"""How an agent reads its stdin is judged on a real process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from antiphon.conformance.agent.suite import check_agent
from antiphon.conformance.options import Options
from antiphon.conformance.targets import CommandTarget
from antiphon.conformance.verdicts import Outcome, Report

ROOT = str(Path(__file__).parents[2])
GOOD = ("tests.conformance.good.agent",)
FRAMING = {"TRANS-02", "TRANS-06", "TRANS-07"}


async def judge(*module: str, timeout: float) -> Report:
    target = CommandTarget([sys.executable, "-m", *module], cwd=ROOT)
    return await check_agent(target, Options(timeout=timeout, only=("framing",), jobs=1), versions=(1,))


async def test_a_good_process_reads_its_stdin_well() -> None:
    report = await judge(*GOOD, timeout=30)
    assert not report.faults
    assert not report.failures + report.warnings
    assert {each.requirement.id for each in report.of(Outcome.PASS)} >= FRAMING


@pytest.mark.parametrize(
    ("module", "requirement"),
    [
        ((*GOOD, "--agent", "tests.conformance.broken.processes:StaysAtTheEnd"), "TRANS-06"),
        ((*GOOD, "--agent", "tests.conformance.broken.processes:AnswersBlankLines"), "TRANS-07"),
        (("tests.conformance.broken.processes",), "TRANS-02"),
    ],
    ids=["stays at the end", "answers blank lines", "reads pieces"],
)
async def test_a_broken_process_is_failed_for_exactly_its_requirement(
    module: tuple[str, ...], requirement: str
) -> None:
    report = await judge(*module, timeout=20)
    assert not report.faults
    assert {each.requirement.id for each in report.failures + report.warnings} == {requirement}
