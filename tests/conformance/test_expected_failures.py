"""Expected failures: what is listed may fail, what is kept must not be listed."""

from __future__ import annotations

import pytest

from antiphon.conformance.report.expected_failures import (
    read_expected_failures,
    stale_entries,
    unexpected_failures,
)
from antiphon.conformance.verdicts import Outcome, Report
from tests.conformance.sample_report import sample, verdict


def test_a_file_has_ids_reasons_comments_and_blank_lines() -> None:
    text = "# known\n\nPROMPT-V1-03   # fixed in 2.0 # soon\n  RPC-10\n"
    assert read_expected_failures(text) == {"PROMPT-V1-03": "fixed in 2.0 # soon", "RPC-10": ""}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("RPC-10\nRPC-999", "line 2: no requirement has the id 'RPC-999'"),
        ("RPC-10 RPC-11", "line 1: no requirement has the id 'RPC-10 RPC-11'"),
        ("RPC-10\nRPC-10 # again", "line 2: RPC-10 is listed twice"),
    ],
)
def test_a_wrong_line_is_named(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_expected_failures(text)


def test_a_listed_failure_is_expected_and_any_other_is_not() -> None:
    assert unexpected_failures(sample(), {"PROMPT-V1-03": ""}) == []
    assert [each.requirement.id for each in unexpected_failures(sample(), {"RPC-10": ""})] == [
        "PROMPT-V1-03"
    ] * 2


@pytest.mark.parametrize(
    ("outcomes", "stale"),
    [
        ({Outcome.PASS}, True),
        ({Outcome.NOT_APPLICABLE}, True),
        ({Outcome.PASS, Outcome.NOT_TESTED}, True),
        ({Outcome.FAIL}, False),
        ({Outcome.WARN}, False),
        ({Outcome.PASS, Outcome.FAIL}, False),
        ({Outcome.NOT_TESTED}, False),
        (set(), False),
    ],
)
def test_an_entry_is_stale_once_the_peer_keeps_it(outcomes: set[Outcome], stale: bool) -> None:
    verdicts = tuple(verdict("RPC-10", each, version=number % 2 + 1) for number, each in enumerate(outcomes))
    report = Report("agent", "x", verdicts)
    assert stale_entries(report, {"RPC-10": ""}) == (["RPC-10"] if stale else [])
