"""`check_hub` judges Antiphon's own hub: started by a command, and at an address."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from antiphon.conformance.hub.suite import check_hub
from antiphon.conformance.link import NotSeen
from antiphon.conformance.options import Options
from antiphon.conformance.verdicts import Outcome, Report
from tests.hub.running import served

TIMEOUT = 60.0
GOOD_AGENT = [sys.executable, str(Path(__file__).parent / "good" / "agent.py")]
SERVE = (
    "umask 077; mkdir -p {folder}; printf %s {token} > {folder}/token; "
    f"exec {sys.executable} -m antiphon serve --port {{port}} --data {{folder}} -- {{agent}}"
)


def outcomes(report: Report) -> dict[str, set[Outcome]]:
    found: dict[str, set[Outcome]] = {}
    for verdict in report.verdicts:
        found.setdefault(verdict.requirement.id, set()).add(verdict.outcome)
    return found


def broken(report: Report) -> list[tuple[str, str, str]]:
    return [
        (each.requirement.id, each.scenario, each.evidence.expected)
        for each in (*report.failures, *report.warnings)
    ]


@pytest.mark.parametrize("version", [1, 2])
async def test_the_judge_plays_the_agent_of_a_hub_that_it_starts(version: int) -> None:
    report = await check_hub(["sh", "-c", SERVE], Options(timeout=TIMEOUT), versions=(version,))
    assert report.faults == ()
    assert broken(report) == []
    found = outcomes(report)
    for requirement in ("QUEUE-06", "PROXY-05", "PROXY-06", "PROXY-07", "PROXY-10", "HTTP-22", "WS-04"):
        assert Outcome.PASS in found[requirement], requirement
    for requirement in ("SESS-22", "MSG-12") if version == 2 else ("SESS-13",):
        assert Outcome.NOT_TESTED not in found[requirement], requirement  # the hub was killed and restarted


async def test_the_judge_prompts_the_agent_of_a_hub_at_an_address(tmp_path: Path) -> None:
    with served(tmp_path, agent=GOOD_AGENT) as hub:
        report = await check_hub(hub.acp, Options(timeout=TIMEOUT), token=hub.token)
    assert report.faults == ()
    assert report.versions == (1, 2)
    assert broken(report) == []
    found = outcomes(report)
    for requirement in ("QUEUE-06", "PROXY-07", "PROXY-08", "PROXY-10", "PROMPT-V2-04", "SESS-18", "HTTP-22"):
        assert Outcome.PASS in found[requirement], requirement
    assert found["PROXY-05"] == {Outcome.NOT_TESTED}  # only an agent of the judge sees what reaches it


async def test_a_hub_that_does_not_start_is_not_judged() -> None:
    command = ["sh", "-c", "echo no store >&2; exit 1"]
    with pytest.raises(NotSeen, match="the hub ended before it listened: no store"):
        await check_hub(command, Options(timeout=TIMEOUT))
