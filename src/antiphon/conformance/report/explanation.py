"""What the judge can say without a peer: its scenarios, and one requirement in full."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from antiphon.conformance.report.terminal import BOLD, DIM, styled
from antiphon.conformance.requirements import conflicts, requirements
from antiphon.conformance.revisions import differences
from antiphon.conformance.suites import PARTIES, suite


def list_scenarios(party: str, only: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the scenarios of a party: name, versions, summary and the requirements they decide.

    Raises `ValueError` for a word of `only` that names nothing.
    """
    for scenario in suite(party).select(only):
        versions = "+".join(f"v{version}" for version in scenario.versions)
        yield f"{styled(scenario.name, BOLD)}  {styled(versions, DIM)}"
        yield f"    {scenario.summary}"
        yield f"    {styled(', '.join(scenario.requirements), DIM)}"


def explain(id: str, *, width: int) -> Iterator[str]:
    """Yield everything that is known about a requirement. Raises `ValueError` for an unknown id."""
    row = requirements().get(id.upper())
    if row is None:
        raise ValueError(f"no requirement has the id {id!r}")
    yield f"{styled(row.id, BOLD)}  {styled(f'{row.level}, {row.party}, {row.versions}, {row.area}', DIM)}"
    yield from _paragraph(row.text, width)
    for conflict in conflicts().values():
        if row.id in conflict.text or row.id in conflict.topic:
            yield from _paragraph(f"{conflict.id}, where the documents disagree: {conflict.text}", width)
    for difference in differences().values():
        if row.id in difference.requirements.split():
            yield from _paragraph(
                f"Since revision {difference.since}: {difference.text} ({difference.source})", width
            )
    for party in PARTIES:
        names = suite(party).deciding(row.id)
        if names:
            yield from _paragraph(f"Decided for {party}s by {', '.join(names)}", width)


def _paragraph(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
