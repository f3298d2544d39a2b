"""What was found when each fail was checked by hand against the spec."""

from __future__ import annotations

from csv import QUOTE_NONE, DictReader
from pathlib import Path

FILE = Path(__file__).with_name("notes.tsv")


def read_notes() -> dict[tuple[str, str], str]:
    """Return the notes by peer and requirement. One row may be about several peers, with `; ` between."""
    rows = DictReader(FILE.read_text(encoding="utf-8").splitlines(), delimiter="\t", quoting=QUOTE_NONE)
    return {(peer, row["requirement"]): row["note"] for row in rows for peer in row["peers"].split("; ")}
