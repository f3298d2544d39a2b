"""The report on a terminal: nothing is drowned, and no frame can steer the terminal."""

from __future__ import annotations

import re

import pytest

from antiphon.conformance.report.terminal import to_terminal
from antiphon.conformance.requirements import requirements
from antiphon.conformance.verdicts import Outcome
from antiphon.text_safety import is_safe
from tests.conformance.sample_report import sample, verdict

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def shown(width: int = 100, **expected: str) -> list[str]:
    ids = {id.replace("_", "-"): reason for id, reason in expected.items()}
    return [STYLE.sub("", line) for line in to_terminal(sample(), expected=ids, width=width)]


def test_a_failure_shows_its_requirement_the_expectation_and_the_frames() -> None:
    text = "\n".join(shown())
    failure = text[text.index("FAIL  PROMPT-V1-03") :]
    assert requirements()["PROMPT-V1-03"].text in failure
    assert "Expected </pre>" in failure
    assert re.search(r"0\.001 s  agent → client  notification", failure)
    assert "also in turns/b" in failure
    assert "bytes that are not JSON" in failure


def test_the_failures_come_last_before_the_counts() -> None:
    lines = shown()
    heads = [line.split()[0] for line in lines if re.match("(WARN|FAIL|Not) ", line)]
    assert heads == ["Not", "Not", "WARN", "FAIL"]
    assert lines[-1] == "1 fail, 1 warn, 2 pass, 1 not applicable, 2 not tested"


def test_every_area_has_its_counts() -> None:
    area = next(line for line in shown() if line.startswith("Prompts and turns in v1"))
    assert area.split()[-5:] == ["1", "1", "·", "·", "·"]


def test_reasons_are_listed_once_with_their_requirements() -> None:
    text = "\n".join(shown())
    assert "2: no frame of this kind was seen\n     RPC-29, RPC-31 (v2)" in text


def test_an_expected_failure_is_marked_with_its_reason() -> None:
    text = "\n".join(shown(PROMPT_V1_03="fixed in 2.0"))
    assert "FAIL (expected)  PROMPT-V1-03" in text
    assert "Known: fixed in 2.0" in text
    assert text.endswith("(1 expected)")


def test_a_stale_expectation_is_named() -> None:
    assert any("Stale: PROMPT-V1-02" in line for line in shown(PROMPT_V1_02=""))


def test_a_fault_of_the_judge_is_named() -> None:
    lines = to_terminal(sample(faults=("turns/a (v1): the judge failed",)), expected={}, width=100)
    assert any("Fault of the judge: turns/a" in line for line in lines)


@pytest.mark.parametrize("width", [20, 80, 200])
def test_no_frame_can_steer_the_terminal(width: int) -> None:
    for line in shown(width):
        assert is_safe(line)
        assert "\n" not in line


def test_many_reasons_are_counted_and_not_listed() -> None:
    ids = [id for id in requirements() if requirements()[id].versions == "v1+v2"][:30]
    many = [verdict(id, Outcome.NOT_TESTED, f"reason {id}", version=2) for id in ids]
    text = "\n".join(to_terminal(sample(*many), expected={}, width=100))
    assert "for other reasons: --json" in text
