"""The report as JUnit XML, which every CI system reads: one test case per requirement and version."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from xml.sax.saxutils import quoteattr

from antiphon.conformance.report.expected_failures import Expected, stale_entries
from antiphon.conformance.report.frames import proof
from antiphon.conformance.verdicts import Outcome, Report, Verdict
from antiphon.text_safety import safe_line, safe_text


def to_junit(report: Report, expected: Expected) -> str:
    """Return the report as JUnit XML. A warning passes with its text as output; an expected failure is
    skipped."""
    return "".join(_document(report, expected))


def _document(report: Report, expected: Expected) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f"<testsuites name={_attribute(f'ACP conformance of {report.target}')}>\n"
    verdicts = list(report.by_requirement().values())
    for (version, area), group in groupby(verdicts, key=lambda each: (each.version, each.requirement.area)):
        yield from _suite(f"ACP {version}: {area}", list(group), report, expected)
    yield from _judge(report, expected)
    yield "</testsuites>\n"


def _suite(name: str, verdicts: list[Verdict], report: Report, expected: Expected) -> Iterator[str]:
    failed = sum(_is_failed(each, expected) for each in verdicts)
    skipped = sum(_is_skipped(each, expected) for each in verdicts)
    yield (
        f'  <testsuite name={_attribute(name)} tests="{len(verdicts)}" failures="{failed}" '
        f'errors="0" skipped="{skipped}">\n'
    )
    for verdict in verdicts:
        yield from _case(verdict, report, expected)
    yield "  </testsuite>\n"


def _is_failed(verdict: Verdict, expected: Expected) -> bool:
    return verdict.outcome is Outcome.FAIL and verdict.requirement.id not in expected


def _is_skipped(verdict: Verdict, expected: Expected) -> bool:
    return verdict.outcome not in (Outcome.PASS, Outcome.WARN) and not _is_failed(verdict, expected)


def _case(verdict: Verdict, report: Report, expected: Expected) -> Iterator[str]:
    row = verdict.requirement
    place = f"acp.{report.party}.v{verdict.version}"
    yield f"    <testcase classname={_attribute(place)} name={_attribute(f'{row.id} {row.text}')}>"
    message = _attribute(verdict.evidence.expected)
    if _is_failed(verdict, expected):
        yield f"<failure type={_attribute(row.level)} message={message}>{_text(proof(verdict))}</failure>"
    elif verdict.outcome is Outcome.FAIL:
        yield f"<skipped message={_attribute(f'expected failure: {expected[row.id]}')}/>"
    elif _is_skipped(verdict, expected):
        yield f"<skipped message={_attribute(f'{verdict.outcome}: {verdict.evidence.expected}')}/>"
    elif verdict.outcome is Outcome.WARN:
        yield f"<system-out>{_text(f'warning: {proof(verdict)}')}</system-out>"
    yield "</testcase>\n"


def _judge(report: Report, expected: Expected) -> Iterator[str]:
    """Write what is wrong with the run itself: faults of the judge and stale expectations."""
    stale = stale_entries(report, expected)
    if not stale and not report.faults:
        return
    total = len(stale) + len(report.faults)
    yield (
        f'  <testsuite name="the judge" tests="{total}" failures="{len(stale)}" '
        f'errors="{len(report.faults)}" skipped="0">\n'
    )
    for id in stale:
        message = "listed as an expected failure, and it is kept"
        yield f'    <testcase classname="acp.expected_failures" name={_attribute(id)}>'
        yield f"<failure message={_attribute(message)}/></testcase>\n"
    for fault in report.faults:
        yield f'    <testcase classname="acp.judge" name={_attribute(fault.partition(":")[0])}>'
        yield f"<error message={_attribute(fault)}/></testcase>\n"
    yield "  </testsuite>\n"


def _attribute(text: str) -> str:
    return quoteattr(safe_line(text, limit=1_000))


def _text(text: str) -> str:
    return escape(safe_text(text), quote=False)
