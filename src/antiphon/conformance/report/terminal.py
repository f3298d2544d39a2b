"""The report for a terminal: counts by area, what was not tested and why, then each warning and failure.

The failures come last, so that they are on the screen when the judge is done. The text has styles; the caller
removes them where they are not wanted.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from antiphon.conformance.report import frames
from antiphon.conformance.report.expected_failures import Expected, stale_entries
from antiphon.conformance.requirements import SECTIONS, requirements
from antiphon.conformance.verdicts import Outcome, Report, Verdict
from antiphon.text_safety import safe_line

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"
COLOURS = {
    Outcome.FAIL: RED,
    Outcome.WARN: YELLOW,
    Outcome.PASS: GREEN,
    Outcome.NOT_APPLICABLE: DIM,
    Outcome.NOT_TESTED: DIM,
}
NARROWEST = 60
MOST_REASONS = 12
"""Reasons of requirements that were not decided. The rest is counted."""


def styled(text: str, *codes: str) -> str:
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if text else ""


def to_terminal(report: Report, *, expected: Expected, width: int) -> Iterator[str]:
    """Yield the lines of the report, with styles."""
    width = max(width, NARROWEST)
    yield f"{styled(safe_line(report.target), BOLD)} as {_article(report.party)}, {_versions(report)}"
    yield ""
    yield from _areas(report, width)
    for outcome in (Outcome.NOT_APPLICABLE, Outcome.NOT_TESTED):
        yield from _reasons(report, outcome, width)
    for outcome in (Outcome.WARN, Outcome.FAIL):
        yield from _proofs(report, outcome, expected, width)
    yield from _ending(report, expected, width)


def _article(party: str) -> str:
    return f"an {party}" if party.startswith("a") else f"a {party}"


def _versions(report: Report) -> str:
    versions = f"ACP {' and '.join(map(str, report.versions)) or '?'}"
    return (
        f"{versions} (revision {report.revision})" if report.revision and 2 in report.versions else versions
    )


# --- counts --------------------------------------------------------------------------------------------


def _areas(report: Report, width: int) -> Iterator[str]:
    counts: dict[str, dict[Outcome, int]] = {}
    for verdict in report.by_requirement().values():
        counts.setdefault(verdict.requirement.area, dict.fromkeys(Outcome, 0))[verdict.outcome] += 1
    order = (Outcome.PASS, Outcome.FAIL, Outcome.WARN, Outcome.NOT_APPLICABLE, Outcome.NOT_TESTED)
    columns = {outcome: max(4, len(outcome.value)) for outcome in order}
    name = max(20, min(52, width - sum(columns.values()) - 2 * len(columns)))
    heads = "".join(f"  {outcome.value:>{columns[outcome]}}" for outcome in order)
    yield styled(f"{'':<{name}}{heads}", DIM)
    for area, found in sorted(counts.items(), key=lambda item: list(SECTIONS.values()).index(item[0])):
        cells = "".join(f"  {_cell(outcome, found[outcome], columns[outcome])}" for outcome in order)
        yield f"{safe_line(area, limit=name):<{name}}{cells}"
    yield ""


def _cell(outcome: Outcome, count: int, width: int) -> str:
    text = f"{count or '·':>{width}}"
    return styled(text, COLOURS[outcome] if count else DIM)


def _reasons(report: Report, outcome: Outcome, width: int) -> Iterator[str]:
    """List the requirements of an outcome by the reason, the most common first."""
    reasons: dict[str, dict[str, list[int]]] = {}
    for verdict in report.by_requirement().values():
        if verdict.outcome is outcome:
            ids = reasons.setdefault(safe_line(verdict.evidence.expected), {})
            ids.setdefault(verdict.requirement.id, []).append(verdict.version)
    if not reasons:
        return
    yield styled(outcome.value.capitalize(), BOLD)
    common = sorted(reasons.items(), key=lambda item: -len(item[1]))
    for reason, ids in common[:MOST_REASONS]:
        names = ", ".join(_name(id, versions, report) for id, versions in ids.items())
        yield from _wrapped(f"{len(ids)}: {reason}", width, indent=2)
        yield from (styled(line, DIM) for line in _wrapped(names, width, indent=5))
    if len(common) > MOST_REASONS:
        rest = sum(len(ids) for _, ids in common[MOST_REASONS:])
        yield f"  {rest} for other reasons: --json, --junit and --html have them all"
    yield ""


def _name(id: str, versions: Sequence[int], report: Report) -> str:
    """Return an id, with the version if the requirement has another verdict in the other version."""
    judged = set(requirements()[id].protocol_versions) & set(report.versions)
    return id if set(versions) == judged else f"{id} (v{versions[0]})"


# --- proofs --------------------------------------------------------------------------------------------


def _proofs(report: Report, outcome: Outcome, expected: Expected, width: int) -> Iterator[str]:
    for key, verdict in report.by_requirement().items():
        if verdict.outcome is outcome:
            others = [
                each.scenario for each in report.of(outcome)
                if (each.requirement.id, each.version) == key and each.scenario != verdict.scenario
            ]  # fmt: skip
            yield from _proof(verdict, others, expected, width)


def _proof(verdict: Verdict, others: Sequence[str], expected: Expected, width: int) -> Iterator[str]:
    row, colour = verdict.requirement, COLOURS[verdict.outcome]
    known = verdict.outcome is Outcome.FAIL and row.id in expected
    mark = f"{verdict.outcome.value.upper()}{' (expected)' if known else ''}"
    about = f"{row.level}, ACP {verdict.version}, {safe_line(verdict.scenario)}"
    yield f"{styled(mark, BOLD, DIM if known else colour)}  {styled(row.id, BOLD)}  {styled(about, DIM)}"
    yield from _wrapped(row.text, width, indent=4)
    if known and expected[row.id]:
        yield from _wrapped(f"Known: {expected[row.id]}", width, indent=4)
    yield from (
        styled(line, colour)
        for line in _wrapped(_sentence(verdict.evidence.expected), width, indent=4)
    )  # fmt: skip
    yield from _frames(verdict, width)
    if others:
        yield from (styled(line, DIM) for line in _wrapped(f"also in {', '.join(others)}", width, indent=4))
    yield ""


def _sentence(text: str) -> str:
    shown = safe_line(text, limit=1_000)
    return shown[:1].upper() + shown[1:]


def _frames(verdict: Verdict, width: int) -> Iterator[str]:
    for frame in verdict.evidence.frames:
        head = f"{frames.time(frame):>10}  {frames.direction(frame)}  {frames.title(frame)}"
        yield f"    {styled(head, CYAN)}"
        yield f"                {styled(frames.line(frame, limit=3 * (width - 16)), DIM)}"


# --- the end -------------------------------------------------------------------------------------------


def _ending(report: Report, expected: Expected, width: int) -> Iterator[str]:
    for fault in report.faults:
        text = f"Fault of the judge: {safe_line(fault, limit=1_000)}"
        yield from (styled(line, RED) for line in _wrapped(text, width, indent=0))
    for id in stale_entries(report, expected):
        text = f"Stale: {id} is an expected failure, but the {report.party} keeps it: remove the entry"
        yield from (styled(line, RED) for line in _wrapped(text, width, indent=0))
    counts = report.counts()
    parts = [
        styled(f"{count} {outcome.value}", BOLD, COLOURS[outcome])
        for outcome, count in counts.items()
        if count or outcome in (Outcome.FAIL, Outcome.PASS)
    ]
    known = {
        (each.requirement.id, each.version) for each in report.failures if each.requirement.id in expected
    }
    yield ", ".join(parts) + (f" ({len(known)} expected)" if known else "")


def _wrapped(text: str, width: int, *, indent: int) -> Iterable[str]:
    before = " " * indent
    return textwrap.wrap(text, width, initial_indent=before, subsequent_indent=before, break_on_hyphens=False)
