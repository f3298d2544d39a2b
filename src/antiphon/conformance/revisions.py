"""Revisions of the v2 draft that are in use at once, and what changed between them."""

from __future__ import annotations

from csv import QUOTE_NONE, DictReader
from functools import cache
from importlib.resources import files

from msgspec import Struct

REVISIONS = ("alpha.5", "alpha.10", "alpha.12")
"""The known revisions, oldest first."""
PINNED = REVISIONS[-1]
"""The revision of the pinned schemas."""


class Difference(Struct, frozen=True):
    """One thing that came with a revision.

    `requirements` are the ids that state nothing before that revision, with spaces between: an older peer is
    not judged by them. A difference in a part of a requirement has none; its check names the difference.
    """

    id: str
    since: str
    requirements: str
    text: str
    source: str


@cache
def differences() -> dict[str, Difference]:
    """Return every difference by its id."""
    text = files(__package__).joinpath("revisions.tsv").read_text(encoding="utf-8")
    rows = DictReader(text.splitlines(), delimiter="\t", quoting=QUOTE_NONE)
    return {row["id"]: Difference(**row) for row in rows}


def has(revision: str, difference: str) -> bool:
    """Whether a revision has what the difference names."""
    return REVISIONS.index(differences()[difference].since) <= REVISIONS.index(revision)


@cache
def came_later(requirement: str, revision: str) -> Difference | None:
    """Return the difference that brought a requirement, if the revision is older than that."""
    for difference in differences().values():
        if requirement in difference.requirements.split() and not has(revision, difference.id):
            return difference
    return None
