"""The pytest plugin: one test per requirement, and nothing for users who do not ask for it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

ROOT = Path(__file__).parents[2]
DEADLINE = 120
GOOD = f"{sys.executable} {ROOT}/tests/conformance/good/agent.py"
BROKEN = f"{GOOD} --agent tests.cli.agents.judged:StopsStrangely"
PICKY = f"{GOOD} --agent tests.conformance.broken.agents_sessions:HasNoServers"
"""Its requirement is decided by one scenario: a run takes a second."""


def run(folder: Path, *arguments: str) -> CompletedProcess[str]:
    """Run pytest in a project of its own."""
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-rsxf", "-v", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE, check=False)


def outcomes(result: CompletedProcess[str]) -> dict[str, str]:
    return dict(re.findall(r"^(\S+::\S+) (PASSED|FAILED|SKIPPED|XFAIL)", result.stdout, re.M))


def test_each_requirement_is_a_test_beside_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("def test_mine_PROMPT_V1(): pass\n")
    result = run(tmp_path, "--acp-agent", GOOD, "--acp-version", "1", "-k", "mine or MCPCFG-01 or SESS-35")
    assert result.returncode == 0, result.stdout
    assert outcomes(result) == {
        "test_mine.py::test_mine_PROMPT_V1": "PASSED",
        "acp::v1::MCPCFG-01": "PASSED",
        "acp::v1::SESS-35": "PASSED",
    }


def test_a_broken_requirement_fails_with_its_frames(tmp_path: Path) -> None:
    result = run(tmp_path, "--acp-agent", BROKEN, "--acp-version", "1", "-k", "PROMPT-V1-05")
    assert result.returncode == 1
    assert outcomes(result) == {"acp::v1::PROMPT-V1-05": "FAILED"}
    assert '"stopReason": "tired ' in result.stdout
    assert "client → agent" in result.stdout
    assert "Traceback" not in result.stdout


def test_an_expected_failure_is_an_xfail_and_a_stale_one_fails(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("MCPCFG-01  # being fixed\n")
    options = ["--acp-version", "1", "-k", "MCPCFG-01", "--acp-expected-failures", str(known)]
    broken = run(tmp_path, "--acp-agent", PICKY, *options)
    assert (broken.returncode, outcomes(broken)) == (0, {"acp::v1::MCPCFG-01": "XFAIL"})
    assert "being fixed" in broken.stdout
    stale = run(tmp_path, "--acp-agent", GOOD, *options)
    assert stale.returncode == 1
    assert "listed as an expected failure, and it is kept" in stale.stdout


def test_a_report_is_a_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "def test_mine(acp_report):\n"
        "    assert acp_report.versions == (1,)\n"
        "    assert 'PROMPT-V1-05' in {each.requirement.id for each in acp_report.failures}\n"
    )
    result = run(tmp_path, "--acp-agent", BROKEN, "--acp-version", "1", "-k", "mine")
    assert result.returncode == 0, result.stdout
    collected = re.search(r"collected (\d+) items / (\d+) deselected / 1 selected", result.stdout)
    assert collected is not None
    assert int(collected[1]) == int(collected[2]) + 1
    without = run(tmp_path)
    assert outcomes(without) == {"test_mine.py::test_mine": "SKIPPED"}


def test_an_agent_that_cannot_be_started_fails_with_the_reason(tmp_path: Path) -> None:
    result = run(tmp_path, "--acp-agent", "sh -c 'exit 3'", "--acp-version", "1", "-k", "PROMPT-V1-02")
    assert result.returncode == 1
    assert "sh exited with code 3" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [["--acp-expected-failures", "missing.txt"], ["--acp-version", "3"], ["--acp-prompt", "loud=HI"]],
)
def test_a_wrong_option_is_a_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    assert run(tmp_path, "--acp-agent", GOOD, *arguments).returncode == pytest.ExitCode.USAGE_ERROR


def test_without_the_option_nothing_of_the_judge_is_imported(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import sys\n"
        "def test_mine():\n"
        "    ours = {name for name in sys.modules if name.startswith('antiphon')}\n"
        "    assert ours <= {'antiphon', 'antiphon.version', 'antiphon.lazy_names', 'antiphon.conformance',\n"
        "                    'antiphon.conformance.pytest_plugin'}, ours\n"
    )
    result = run(tmp_path)
    assert result.returncode == 0, result.stdout
    assert outcomes(result) == {"test_mine.py::test_mine": "PASSED"}
