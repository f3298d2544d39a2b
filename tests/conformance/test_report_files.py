"""Reports as files: they are whole, they can be read, and a hostile frame stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from antiphon.conformance.report.badge import BAD, FAIR, GOOD, to_badge
from antiphon.conformance.report.json_file import to_json
from antiphon.conformance.report.junit import to_junit
from antiphon.conformance.report.page import STYLE, to_html
from antiphon.conformance.verdicts import Outcome, Report
from antiphon.text_safety import is_safe
from antiphon.version import __version__
from tests.conformance.sample_report import HOSTILE_FRAMES, sample, verdict

# --- JSON ----------------------------------------------------------------------------------------------


def test_json_has_a_header_and_every_verdict() -> None:
    report = sample(faults=("turns/a (v1): the judge failed",))
    found = json.loads(to_json(report, {"PROMPT-V1-02": ""}))
    verdicts = found.pop("verdicts")
    assert "my-agent" in found.pop("target")
    assert found == {
        "antiphon": __version__,
        "party": "agent",
        "versions": [1, 2],
        "revision": "alpha.12",
        "summary": {"fail": 1, "warn": 1, "pass": 2, "not applicable": 1, "not tested": 2},
        "faults": ["turns/a (v1): the judge failed"],
        "staleExpectedFailures": ["PROMPT-V1-02"],
    }
    assert [(each["requirement"], each["verdict"], each["scenario"]) for each in verdicts] == [
        (each.requirement.id, each.outcome.value, each.scenario) for each in report.verdicts
    ]


def test_json_keeps_the_bytes_of_every_frame() -> None:
    verdicts = json.loads(to_json(sample(), {}))["verdicts"]
    frames = verdicts[1]["evidence"]["frames"]
    found = [base64.b64decode(f["base64"]) if "base64" in f else f["line"].encode() for f in frames]
    assert found == [frame.raw for frame in HOSTILE_FRAMES]
    assert {frame["from"] for frame in frames} == {"agent"}
    assert frames[0]["at"] == 0.001


def test_json_names_expected_failures() -> None:
    verdicts = json.loads(to_json(sample(), {"PROMPT-V1-03": "known", "RPC-10": ""}))["verdicts"]
    assert [each.get("expectedFailure") for each in verdicts[:5]] == [None, "known", "known", None, None]


def test_json_is_safe_to_print() -> None:
    assert is_safe(to_json(sample(), {}).decode())


# --- JUnit ---------------------------------------------------------------------------------------------


def cases(report: Report, **expected: str) -> dict[str, ElementTree.Element]:
    document = to_junit(report, {id.replace("_", "-"): reason for id, reason in expected.items()})
    root = ElementTree.fromstring(document)
    for suite in root:
        for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(kind, "")) == len(suite.findall(f"testcase/{tag}"))
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
    return {
        f"{case.get('classname')} {case.get('name', '').split()[0]}": case for case in root.iter("testcase")
    }


def test_junit_has_one_case_per_requirement_and_version() -> None:
    found = cases(sample())
    assert {name: next((each.tag for each in case), "") for name, case in found.items()} == {
        "acp.agent.v1 RPC-10": "system-out",
        "acp.agent.v1 PROMPT-V1-02": "",
        "acp.agent.v1 PROMPT-V1-03": "failure",
        "acp.agent.v2 RPC-10": "",
        "acp.agent.v2 RPC-24": "skipped",
        "acp.agent.v2 RPC-29": "skipped",
        "acp.agent.v2 RPC-31": "skipped",
    }
    failure = found["acp.agent.v1 PROMPT-V1-03"][0]
    assert "agent → client" in (failure.text or "")
    assert "<script>" in failure.get("message", "")


def test_junit_skips_expected_failures_and_fails_stale_ones() -> None:
    found = cases(sample(faults=("x (v1): broke",)), PROMPT_V1_03="known", PROMPT_V1_02="")
    assert found["acp.agent.v1 PROMPT-V1-03"][0].tag == "skipped"
    assert found["acp.expected_failures PROMPT-V1-02"][0].tag == "failure"
    assert found["acp.judge x"][0].tag == "error"


# --- HTML ----------------------------------------------------------------------------------------------

VOID = {"meta"}


class Tags(HTMLParser):
    """The tags of a page, which must nest, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes.update(name for name, _ in attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_is_whole_and_runs_nothing() -> None:
    page = "".join(to_html(sample(), {"PROMPT-V1-02": ""}))
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert not tags.open
    assert tags.seen == {
        "html", "head", "meta", "title", "style", "body", "header", "p", "h1", "dl", "div", "dt", "dd", "ul",
        "li", "b", "span", "main", "section", "h2", "details", "summary", "time", "code", "pre", "footer",
    }  # fmt: skip
    assert tags.attributes == {
        "lang", "charset", "http-equiv", "content", "name", "class", "dir", "id", "open",
    }  # fmt: skip
    text = "".join(tags.words)
    assert "<script>alert(1)</script>" in text, "the frame is shown as text"
    assert "Stale: PROMPT-V1-02" in text
    assert is_safe(page)


def test_the_policy_of_the_page_allows_its_own_style_alone() -> None:
    page = "".join(to_html(sample(), {}))
    style = re.findall(r"<style>(.*?)</style>", page, re.S)
    assert style == [STYLE]
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert "default-src &#x27;none&#x27;" in page
    assert f"style-src &#x27;sha256-{digest}&#x27;" in page


def test_a_failure_is_unfolded_and_a_pass_is_not() -> None:
    page = "".join(to_html(sample(), {}))
    assert page.count('<details class="verdict fail" open>') == 1
    assert '<details class="verdict pass" open>' not in page
    assert page.count('<details class="frame agent">') >= len(HOSTILE_FRAMES)


def test_a_huge_frame_does_not_make_a_huge_page() -> None:
    assert len("".join(to_html(sample(), {}))) < 200_000


# --- the badge -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("report", "text", "colour"),
    [
        (sample(), "ACP agent v1+v2: 2 of 4 kept", BAD),
        (Report("hub", "x", (verdict("RPC-10", Outcome.WARN),)), "ACP hub v1: 0 of 1 kept", FAIR),
        (Report("agent", "x", (verdict("RPC-10", Outcome.PASS),)), "ACP agent v1: 1 of 1 kept", GOOD),
        (Report("agent", "x", ()), "ACP agent v?: not judged", FAIR),
    ],
)
def test_a_badge_counts_and_has_a_colour(report: Report, text: str, colour: str) -> None:
    badge = ElementTree.fromstring(to_badge(report))
    assert badge.get("aria-label") == text
    assert [each.get("fill") for each in badge.iter("{http://www.w3.org/2000/svg}rect")][-1] == colour
