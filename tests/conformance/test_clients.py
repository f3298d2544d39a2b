"""How the judge starts clients, and what it says of clients that it cannot judge."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import PlayedAgent
from antiphon.conformance.client.program import client_command
from antiphon.conformance.client.suite import PLAIN, check_client
from antiphon.conformance.link import NotSeen
from antiphon.conformance.options import Options
from antiphon.conformance.recording import Role
from antiphon.conformance.rules.suite import RULES
from antiphon.conformance.runner import Findings
from antiphon.conformance.scenario import Decisions
from antiphon.conformance.verdicts import Outcome, Report
from tests.conformance.good.client import GoodClient
from tests.conformance.good.other_clients import (
    LingeringClient,
    SecondTryClient,
    SilentClient,
    V1Client,
    V2Client,
)
from tests.conformance.test_broken_clients import START

OPTIONS = Options(timeout=1.0, jobs=8)


def command(client: type[GoodClient]) -> list[str]:
    return [sys.executable, "-S", str(START), client.__module__, client.__name__]


def unkept(report: Report) -> list[str]:
    return [verdict.requirement.id for verdict in (*report.failures, *report.warnings)]


@pytest.fixture
async def agent() -> Any:
    """The judge's agent, with the good client at the other end."""
    decisions = Decisions("test", (), version=1, revision=OPTIONS.revision)
    case = ClientCase(command(GoodClient), decisions, version=1, manner=PLAIN, timeout=20.0)
    yield await case.open()
    await case.aclose()


def test_the_agent_is_quoted_for_a_shell_or_is_the_last_argument() -> None:
    socket = Path("/tmp/a folder/agent")
    *start, last = client_command(["client", "--verbose"], socket)
    assert start == ["client", "--verbose"]
    assert shlex.split(last)[-1] == str(socket)
    assert client_command(["sh", "-c", "client -- {agent}; exit"], socket)[2] == f"client -- {last}; exit"


@pytest.mark.parametrize(("client", "version"), [(V1Client, 1), (V2Client, 2)])
async def test_a_client_is_judged_in_the_versions_that_it_speaks(
    client: type[GoodClient], version: int
) -> None:
    report = await check_client(command(client), OPTIONS)
    assert {verdict.version for verdict in report.verdicts} == {version}
    assert unkept(report) == []


async def test_a_silent_client_is_not_failed_for_what_it_does_not_print() -> None:
    report = await check_client(command(SilentClient), OPTIONS)
    assert unkept(report) == []
    (verdict,) = [each for each in report.of(Outcome.NOT_TESTED) if each.requirement.id == "PROMPT-V1-04"]
    assert "does not print" in verdict.evidence.expected


async def test_a_client_that_lingers_is_not_failed_for_that() -> None:
    report = await check_client(command(LingeringClient), OPTIONS, versions=(1,))
    assert unkept(report) == []
    assert report.of(Outcome.PASS)


async def test_a_client_that_starts_the_agent_again_is_not_failed_for_that() -> None:
    report = await check_client(
        command(SecondTryClient), Options(timeout=1.0, only=("RPC-36",)), versions=(1,)
    )
    assert unkept(report) == []


async def test_a_program_that_is_no_client_is_told_as_such() -> None:
    program = [sys.executable, "-S", "-c", "import sys; sys.exit('no such option')"]
    with pytest.raises(NotSeen, match="without starting the agent: no such option"):
        await check_client(program, OPTIONS)


async def test_the_agent_of_the_judge_keeps_the_rules_itself(agent: PlayedAgent) -> None:
    prompt = await agent.prompt()
    agent.accept(prompt)
    agent.say("Hello.")
    agent.finish(prompt)
    assert await agent.ended()
    findings = Findings(RULES, judged=Role.AGENT, revision=OPTIONS.revision)
    findings.add("test", agent.link.recording)
    broken = [each for each in findings.verdicts(1) if each.outcome in (Outcome.FAIL, Outcome.WARN)]
    assert broken == []


async def test_the_stand_in_ends_with_its_input_and_with_the_judge(agent: PlayedAgent) -> None:
    command = shlex.split(client_command([], agent.run.socket)[0])
    pipe = asyncio.subprocess.PIPE
    first = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    connection = await agent.run.connections.get()
    await first.communicate(b"")
    assert first.returncode == 0
    await connection.aclose()
    second = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    connection = await agent.run.connections.get()
    connection.send_framed(b'{"half": ')
    await connection.aclose()
    assert second.stdout is not None
    assert await second.stdout.read() == b'{"half": '
    assert await second.wait() == 1
