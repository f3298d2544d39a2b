"""Requirements that the judge does not decide, each with the reason, per judged party."""

from __future__ import annotations

from csv import QUOTE_NONE, DictReader
from functools import cache
from importlib.resources import files

from antiphon.conformance.requirements import Requirement, requirements

JUDGED_AS = {"agent": ("agent", "both"), "client": ("client", "both"), "hub": ("proxy",)}
"""The parties of the catalogue whose requirements a suite decides."""


@cache
def untested(party: str) -> dict[str, str]:
    """Return the reason for every requirement of a party that no scenario and no rule decides."""
    text = files(__package__).joinpath("untested.tsv").read_text(encoding="utf-8")
    rows = DictReader(text.splitlines(), delimiter="\t", quoting=QUOTE_NONE)
    return {row["requirement"]: row["reason"] for row in rows if row["party"] == party}


def binding(party: str) -> list[Requirement]:
    """Return the requirements that a peer can break as this party: all but MAY and Antiphon's decisions."""
    return [
        row
        for row in requirements().values()
        if row.party in JUDGED_AS[party] and row.level != "MAY" and not row.id.startswith("SD-")
    ]
