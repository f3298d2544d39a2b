"""The catalogue of requirements: one sentence for every id that code, tests and documents name."""

from __future__ import annotations

from csv import QUOTE_NONE, DictReader
from functools import cache
from importlib.resources import files

from msgspec import Struct


class Requirement(Struct, frozen=True):
    """One rule of the protocol.

    `level` is MUST, SHOULD or MAY. `party` is agent, client, both or proxy. `versions` names the protocol
    versions or drafts that state the rule: v1, v2, v1+v2, v1-unst, v2-unst, unst (both unstable schemas) or
    seed (a proposal). `section` is the section of the catalogue.
    """

    id: str
    level: str
    party: str
    versions: str
    section: str
    text: str


class Conflict(Struct, frozen=True):
    """A topic on which the published documents disagree, and the behaviour that Antiphon implements."""

    id: str
    topic: str
    text: str


def _rows(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return list(DictReader(text.splitlines(), delimiter="\t", quoting=QUOTE_NONE))


@cache
def requirements() -> dict[str, Requirement]:
    """Return every requirement by its id, in the order of the catalogue."""
    return {row["id"]: Requirement(**row) for row in _rows("requirements.tsv")}


@cache
def conflicts() -> dict[str, Conflict]:
    """Return every conflict between the published documents by its id."""
    return {row["id"]: Conflict(**row) for row in _rows("conflicts.tsv")}
