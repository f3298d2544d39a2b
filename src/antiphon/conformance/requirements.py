"""The catalogue of requirements: one sentence for every id that code, tests and documents name."""

from __future__ import annotations

from csv import QUOTE_NONE, DictReader
from functools import cache
from importlib.resources import files

from msgspec import Struct

SECTIONS = {
    "1": "JSON-RPC: framing, ids, errors, cancelling requests",
    "2": "Initialization and the choice of the version",
    "3": "Logging in and out",
    "4": "Sessions",
    "4.1": "MCP servers of a session",
    "5": "Prompts and turns in v1",
    "6": "Prompts and states in v2",
    "7": "Messages, their ids and chunks",
    "8": "Tool calls, terminals of the agent, diffs",
    "9": "Permissions",
    "10": "Elicitation",
    "11": "Plans",
    "12": "Modes and config options",
    "13": "Slash commands",
    "14": "Usage and session information",
    "15": "Notices and compaction",
    "16": "Files and terminals of the client (v1)",
    "17": "MCP over ACP",
    "18": "Content blocks",
    "19": "Extensions",
    "20": "Transports",
    "21": "Observability",
    "22": "Proposals: `turn_complete` and the queue",
    "23": "Proxies, subagents, providers",
    "25": "Proposals compared with the published draft",
}
"""The titles of the sections of the catalogue."""
UNPUBLISHED = frozenset({
    "RPC-14", "RPC-36", "INIT-29", "MSG-20", "MCPACP-05", "MCPACP-07", "MCPACP-08", "HTTP-13", "HTTP-14",
})  # fmt: skip
"""Rules that no published text states. They are known from the code of an SDK alone: good advice."""


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

    @property
    def area(self) -> str:
        """The title of its section."""
        return SECTIONS[self.section]

    @property
    def is_binding(self) -> bool:
        """Whether a peer fails that breaks it; otherwise it is warned."""
        return self.level == "MUST" and self.id not in UNPUBLISHED

    @property
    def protocol_versions(self) -> tuple[int, ...]:
        """The protocol versions of the rule; both if it is part of no published version."""
        return tuple(number for number in (1, 2) if f"v{number}" in self.versions) or (1, 2)


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
