"""`antiphon check` as people run it: what it prints, what it writes, and every exit code."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from click.testing import CliRunner

from antiphon.cli import main
from antiphon.cli.judge.check import exit_code
from antiphon.cli.judge.settings import Judged
from antiphon.conformance.prompts import Prompts
from antiphon.conformance.recording import Role
from antiphon.conformance.recordings import RecordingWriter
from antiphon.conformance.verdicts import Outcome, Report
from tests import warm
from tests.cli.command import DEADLINE, Terminal, environment
from tests.conformance.sample_report import verdict

GOOD = [sys.executable, "-m", "tests.conformance.good.agent"]
BROKEN = [*GOOD, "--agent", "tests.cli.agents.judged:StopsStrangely"]
CLIENT = [sys.executable, "-m", "tests.conformance.good.client"]
MUTE = [*GOOD, "--agent", "tests.cli.agents.judged:Mute"]
SCENARIO = "turns/a-turn-ends-with-its-response"
ONE = ["--acp-version", "1", "--only", SCENARIO]


def check(*arguments: str, party: str = "agent") -> CompletedProcess[str]:
    return warm.run(["check", party, *arguments], timeout=DEADLINE, env=environment(COLUMNS="100"))


def said(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", *arguments], prog_name="antiphon")
    return result.exit_code, " ".join(result.output.split())


# --- exit codes ----------------------------------------------------------------------------------------


def test_a_good_agent_is_0_and_the_scenarios_are_named_on_the_way() -> None:
    result = check(*ONE, "--", *GOOD)
    assert result.returncode == Judged.KEPT, result.stderr
    assert re.search(rf"^v1  {SCENARIO}  \d pass", result.stderr, re.M)
    assert result.stdout.splitlines()[-1].startswith("0 fail")


def test_a_broken_requirement_is_1_and_is_proved() -> None:
    result = check(*ONE, "--", *BROKEN)
    assert result.returncode == Judged.BROKEN, result.stderr
    failure = result.stdout[result.stdout.index("FAIL  PROMPT-V1-05") :]
    assert "client → agent  request session/prompt" in failure
    assert '{"stopReason": "tired' in failure
    assert "\x1b" not in result.stdout, "no styles in a pipe, and none of the agent's"


def test_an_expected_failure_is_0_and_a_stale_entry_is_1(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("PROMPT-V1-05  # being fixed\n")
    listed = [*ONE, "--expected-failures", str(known)]
    assert check(*listed, "--", *BROKEN).returncode == Judged.KEPT
    stale = check(*listed, "--", *GOOD)
    assert stale.returncode == Judged.BROKEN
    assert "Stale: PROMPT-V1-05" in stale.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["agent"], "name one agent to judge"),
        (["agent", "ws://127.0.0.1:1/acp", "--", "true"], "name one agent to judge"),
        (["agent", "my-agent"], "'my-agent' is not an address: expected one that begins with ws://"),
        (["agent", "--only", "nothing", "--", "true"], "no scenario, area or requirement that is"),
        (["agent", "--explain", "XYZ-1"], "no requirement has the id 'XYZ-1'"),
        (["agent", "--revision", "beta", "--", "true"], "'beta' is none of alpha.5"),
        (["agent", "--prompt", "loud=HI", "--", "true"], "'loud=HI' is not NAME=TEXT with a NAME of plain"),
        (["agent", "--timeout", "0", "--", "true"], "0.0 is not in the range"),
        (["agents"], "did you mean 'agent'?"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_2(arguments: list[str], told: str) -> None:
    code, output = said(*arguments)
    assert code == Judged.USAGE
    assert told in output


def test_a_wrong_entry_among_the_expected_failures_is_2(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("RPC-10\nRPC-1000\n")
    code, output = said("agent", "--expected-failures", str(known), "--", "true")
    assert code == Judged.USAGE
    assert "known.txt: line 2: no requirement has the id 'RPC-1000'" in output


def test_a_file_that_cannot_be_written_is_2(tmp_path: Path) -> None:
    result = check(*ONE, "--json", str(tmp_path / "missing" / "report.json"), "--", *GOOD)
    assert result.returncode == Judged.USAGE
    assert "cannot use" in result.stderr


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (["--", "no-such-agent"], "there is no command 'no-such-agent'"),
        (["--", "sh", "-c", "echo boo >&2; exit 3"], "sh exited with code 3 (last line on stderr: boo)"),
        (["ws://127.0.0.1:9/acp"], "cannot reach ws://127.0.0.1:9/acp"),
        (["--acp-version", "1", "--timeout", "0.5", "--", *MUTE], "response to `initialize` did not come"),
    ],
)
def test_a_peer_that_cannot_be_judged_is_3(agent: list[str], told: str) -> None:
    result = check(*agent)
    assert result.returncode == Judged.UNREACHABLE
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("verdicts", "faults", "code"),
    [
        ([Outcome.PASS, Outcome.WARN, Outcome.NOT_TESTED], (), Judged.KEPT),
        ([Outcome.PASS, Outcome.FAIL], (), Judged.BROKEN),
        ([Outcome.NOT_TESTED, Outcome.NOT_APPLICABLE], (), Judged.UNREACHABLE),
        ([], (), Judged.UNREACHABLE),
        ([Outcome.PASS, Outcome.FAIL], ("a scenario raised",), Judged.FAULT),
    ],
)
def test_a_report_decides_the_exit_code(
    verdicts: list[Outcome], faults: tuple[str, ...], code: Judged
) -> None:
    made = tuple(verdict("RPC-10", outcome) for outcome in verdicts)
    assert exit_code(Report("agent", "x", made, "", faults), {}) is code


def test_a_defect_of_the_judge_is_4(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*given: object, **options: object) -> Report:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("antiphon.cli.judge.check.check", broken)
    result = CliRunner().invoke(main, ["check", "agent", "--", sys.executable])
    assert result.exit_code == Judged.FAULT
    assert "ZeroDivisionError: a defect" in result.output
    assert "the judge failed" in result.output


def test_the_help_lists_every_exit_code() -> None:
    _, output = said("agent", "--help")
    for code in Judged:
        assert f"{int(code)} {code.meaning[:30]}" in output


def test_the_help_names_every_prompt() -> None:
    _, output = said("agent", "--help")
    names = re.search(r"NAME is (.*?)\. May", output)
    assert names is not None
    assert tuple(re.split(", | or ", names[1])) == Prompts.__struct_fields__


# --- clients and recordings ----------------------------------------------------------------------------


def test_a_good_client_is_0() -> None:
    client = [*CLIENT, "hello"]
    result = check("--acp-version", "1", "--only", "INIT-01", "--", *client, party="client")
    assert result.returncode == Judged.KEPT, result.stderr
    assert "as a client, ACP 1" in result.stdout


def test_a_client_that_starts_no_agent_is_3() -> None:
    result = check("--timeout", "0.5", "--", "true", party="client")
    assert result.returncode == Judged.UNREACHABLE
    assert result.stderr.startswith("antiphon: cannot judge the client: ")


def test_a_client_has_its_own_scenarios() -> None:
    code, output = said("client", "--list")
    assert code == 0
    assert "opening/" in output
    assert "initialization/" not in output


def conversation(path: Path, stop_reason: str) -> Path:
    """Write a recording of one v1 turn."""
    frames: list[tuple[Role, dict[str, Any]]] = [
        (Role.CLIENT, {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}),
        (Role.AGENT, {"id": 0, "result": {"protocolVersion": 1}}),
        (Role.CLIENT, {"id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}),
        (Role.AGENT, {"id": 1, "result": {"stopReason": stop_reason}}),
    ]
    with RecordingWriter(path) as writer:
        for at, (sender, frame) in enumerate(frames):
            writer.frame(sender, json.dumps({"jsonrpc": "2.0", **frame}).encode(), at / 1000)
    return path


@pytest.mark.parametrize(("reason", "code"), [("end_turn", Judged.KEPT), ("tired", Judged.BROKEN)])
def test_a_recording_is_judged(tmp_path: Path, reason: str, code: Judged) -> None:
    talk = conversation(tmp_path / "talk.ndjson", reason)
    file = tmp_path / "verdicts.json"
    result = check(str(talk), "--json", str(file), party="recording")
    assert result.returncode == code, result.stdout
    verdicts = json.loads(file.read_text())["verdicts"]
    failed = [each["requirement"] for each in verdicts if each["verdict"] == "fail"]
    assert failed == (["PROMPT-V1-05"] if code else [])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("hello", "expected a JSON object"),
        ('{"from":"client","line":"{}"}', "no successful `initialize`"),
    ],
)
def test_a_file_that_cannot_be_judged_is_2(tmp_path: Path, content: str, told: str) -> None:
    file = tmp_path / "talk.ndjson"
    file.write_text(f"{content}\n")
    code, output = said("recording", str(file))
    assert code == Judged.USAGE
    assert told in output


# --- output --------------------------------------------------------------------------------------------


def test_every_file_is_written(tmp_path: Path) -> None:
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "junit", "html", "badge")}
    result = check(*ONE, *(f"--{kind}={file}" for kind, file in files.items()), "--", *BROKEN)
    assert result.returncode == Judged.BROKEN
    verdicts = json.loads(files["json"].read_text())["verdicts"]
    failed = [each for each in verdicts if each["verdict"] == "fail"]
    assert [each["requirement"] for each in failed] == ["PROMPT-V1-05"]
    assert failed[0]["scenario"] == SCENARIO
    assert "<failure" in files["junit"].read_text()
    assert files["html"].read_text().startswith("<!doctype html>")
    assert files["badge"].read_text().startswith("<svg")


def test_json_on_stdout_is_alone_there() -> None:
    result = check(*ONE, "--json", "-", "--", *GOOD)
    assert json.loads(result.stdout)["party"] == "agent"
    assert "0 fail" in result.stderr


def test_a_terminal_shows_one_live_line_and_colours() -> None:
    command = [sys.executable, "-m", "antiphon", "check", "agent", *ONE, "--", *BROKEN]
    with Terminal(command, columns=100) as terminal:
        terminal.wait_for(SCENARIO)
        terminal.wait_for("FAIL  PROMPT-V1-05")
        assert terminal.wait() == Judged.BROKEN
        assert "\r" in terminal.raw
        assert "\x1b[1;31mFAIL" in terminal.raw
        assert "tired \x1b" not in terminal.raw


def test_no_color_is_respected() -> None:
    command = [sys.executable, "-m", "antiphon", "check", "agent", "--explain", "PROMPT-V1-05"]
    with Terminal(command, NO_COLOR="1") as terminal:
        assert terminal.wait() == 0
        assert "PROMPT-V1-05" in terminal.raw
        assert "\x1b[1m" not in terminal.raw


def test_the_list_names_every_scenario_and_what_it_decides() -> None:
    code, output = said("agent", "--list")
    assert code == 0
    assert f"{SCENARIO} v1 All updates of a v1 turn" in output
    assert "PROMPT-V1-02, PROMPT-V1-03" in output


def test_the_list_can_be_narrowed() -> None:
    _, output = said("agent", "--list", "--only", "PROMPT-V1-03")
    assert SCENARIO in output
    assert "initialization/" not in output


def test_a_requirement_is_explained() -> None:
    code, output = said("agent", "--explain", "prompt-v1-03")
    assert code == 0
    assert "PROMPT-V1-03 MUST, agent, v1, Prompts and turns in v1" in output
    assert "A v1 agent sends all updates of a turn before the response" in output
    assert f"Decided for agents by {SCENARIO}" in output
