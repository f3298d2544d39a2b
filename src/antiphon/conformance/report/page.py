"""The report as one HTML file that runs nothing and loads nothing. Its content security policy says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.report import frames
from antiphon.conformance.report.expected_failures import Expected, stale_entries
from antiphon.conformance.verdicts import Outcome, Report, Verdict
from antiphon.html_page import page_head
from antiphon.text_safety import safe_line, safe_text
from antiphon.version import __version__

STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_CLASSES = {outcome: outcome.value.replace(" ", "-") for outcome in Outcome}
_WORDS = {Outcome.NOT_APPLICABLE: "n/a", Outcome.NOT_TESTED: "open"}


def to_html(report: Report, expected: Expected) -> Iterator[str]:
    """Return the report as one HTML page, piece by piece."""
    return map(safe_text, _page(report, expected))


def _page(report: Report, expected: Expected) -> Iterator[str]:
    title = escape(f"ACP conformance of {safe_line(report.target, limit=160)}")
    yield page_head(title, STYLE)
    yield from _head(report)
    yield from _remarks(report, expected)
    yield "<main>\n"
    verdicts = list(report.by_requirement().values())
    bad = [verdict for verdict in verdicts if verdict.outcome in (Outcome.FAIL, Outcome.WARN)]
    if bad:
        yield '<section>\n<h2 id="broken">Broken requirements</h2>\n'
        for verdict in sorted(bad, key=lambda each: each.outcome is not Outcome.FAIL):
            yield from _verdict(verdict, expected, unfolded=verdict.outcome is Outcome.FAIL)
        yield "</section>\n"
    for (version, area), group in groupby(verdicts, key=lambda each: (each.version, each.requirement.area)):
        yield from _area(version, area, list(group), expected)
    yield f"</main>\n<footer>Judged by Antiphon {escape(__version__)}.</footer>\n</body>\n</html>\n"


def _head(report: Report) -> Iterator[str]:
    versions = " and ".join(map(str, report.versions)) or "?"
    facts = [("Judged as", report.party), ("ACP", versions), ("Revision of the v2 draft", report.revision)]
    yield (
        f'<header>\n<p class="over">ACP conformance</p>\n<h1 dir="auto">{escape(safe_line(report.target))}'
        "</h1>\n<dl>\n"
    )
    yield from (f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>\n" for name, value in facts if value)
    yield '</dl>\n<ul class="counts">\n'
    for outcome, count in report.counts().items():
        kind = f"{_CLASSES[outcome]}{'' if count else ' none'}"
        yield f'<li class="{kind}"><b>{count}</b> <span>{escape(outcome.value)}</span></li>\n'
    yield "</ul>\n</header>\n"


def _remarks(report: Report, expected: Expected) -> Iterator[str]:
    for fault in report.faults:
        yield f'<p class="remark">Fault of the judge: {escape(safe_line(fault, limit=1_000))}</p>\n'
    for id in stale_entries(report, expected):
        yield f'<p class="remark">Stale: {escape(id)} is an expected failure, and it is kept.</p>\n'


def _area(version: int, area: str, verdicts: list[Verdict], expected: Expected) -> Iterator[str]:
    kept = sum(verdict.outcome is Outcome.PASS for verdict in verdicts)
    about = f"ACP {version} · {kept} of {len(verdicts)} kept"
    yield f"<section>\n<h2>{escape(area)} <span>{about}</span></h2>\n"
    for verdict in verdicts:
        yield from _verdict(verdict, expected, unfolded=False)
    yield "</section>\n"


def _verdict(verdict: Verdict, expected: Expected, *, unfolded: bool) -> Iterator[str]:
    row, outcome = verdict.requirement, verdict.outcome
    known = outcome is Outcome.FAIL and row.id in expected
    yield (
        f'<details class="verdict {_CLASSES[outcome]}"{" open" if unfolded else ""}>\n<summary>'
        f'<span class="mark">{_WORDS.get(outcome, outcome.value)}</span> '
        f'<span class="id">{escape(row.id)}</span> <span class="text">{_prose(row.text)}</span></summary>\n'
        '<div class="body">\n'
    )
    yield (
        f'<p class="about">{escape(row.level)} · {escape(row.party)} · ACP {verdict.version} · '
        f"{escape(safe_line(verdict.scenario))}</p>\n"
    )
    if known:
        yield f'<p class="about">Expected failure. {escape(safe_line(expected[row.id]))}</p>\n'
    yield f'<p class="expected" dir="auto">{escape(safe_line(verdict.evidence.expected, limit=2_000))}</p>\n'
    yield from map(_frame, verdict.evidence.frames)
    yield "</div>\n</details>\n"


def _prose(text: str) -> str:
    """Return a text of the catalogue, with its code as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _frame(frame: RecordedFrame) -> str:
    return (
        f'<details class="frame {frame.sender.value}">\n<summary><time>{frames.time(frame)}</time> '
        f"<b>{escape(frames.direction(frame))}</b> <code>{escape(frames.line(frame, limit=160))}</code>"
        f"</summary>\n<pre>{escape(frames.text(frame))}</pre>\n</details>\n"
    )
