"""Expected failures: a file with requirements that a peer is known to break, one id per line.

# comment
PROMPT-V1-03    # fixed in the next release
"""

from __future__ import annotations

from collections.abc import Mapping

from antiphon.conformance.requirements import requirements
from antiphon.conformance.verdicts import Outcome, Report, Verdict

Expected = Mapping[str, str]
"""Reasons by the id of the requirement."""


def read_expected_failures(text: str) -> dict[str, str]:
    """Read a list of expected failures. Raises `ValueError` for an id that the catalogue does not have."""
    expected: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        id, _, reason = (part.strip() for part in line.partition("#"))
        if not id:
            continue
        if id not in requirements():
            raise ValueError(f"line {number}: no requirement has the id {id!r}")
        if id in expected:
            raise ValueError(f"line {number}: {id} is listed twice")
        expected[id] = reason
    return expected


def unexpected_failures(report: Report, expected: Expected) -> list[Verdict]:
    """Return the failures of requirements that are not listed."""
    return [verdict for verdict in report.failures if verdict.requirement.id not in expected]


def stale_entries(report: Report, expected: Expected) -> list[str]:
    """Return the listed ids that the peer does not break any more.

    An id that this run did not decide is not stale: `--only` may have left it out.
    """
    found: dict[str, set[Outcome]] = {}
    for verdict in report.verdicts:
        found.setdefault(verdict.requirement.id, set()).add(verdict.outcome)
    return [
        id for id in expected
        if (seen := found.get(id, set()) - {Outcome.NOT_TESTED}) and not seen & {Outcome.FAIL, Outcome.WARN}
    ]  # fmt: skip
