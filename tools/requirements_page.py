"""Writes docs/requirements.md from the catalogue of requirements: `python -m tools.requirements_page`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from antiphon.conformance.requirements import SECTIONS, conflicts, requirements

PAGE = Path(__file__).parents[1] / "docs" / "requirements.md"

HEAD = """\
# The requirements, by id

Comments, tests and documents name the rules of the Agent Client Protocol by ids such as `PROMPT-V2-33`.
This page says in one sentence what each id stands for. It is made from
`src/antiphon/conformance/requirements.tsv` with `python -m tools.requirements_page`. The sentences are ours;
in case of doubt the published schema decides.

* **Level**: MUST, SHOULD or MAY. A prohibition is a MUST.
* **Party**: the side that the rule binds. A hub is an agent to its clients, a client to its agents, and a
  proxy between them.
* **Versions**: the protocol versions with the rule. `unst` means the unstable schemas, `seed` a proposal
  that Antiphon implements and the published drafts do not have.
"""
CONFLICTS = """\

## Where the documents disagree (C)

The published documents were written at different times. These are the topics on which they differ, and what
Antiphon does.

| Id | Topic | Antiphon |
|---|---|---|
"""
TABLE = "| Id | Level | Party | Versions | Requirement |\n|---|---|---|---|---|\n"


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for section, rows in groupby(requirements().values(), key=lambda row: row.section):
        parts.append(f"\n## {SECTIONS[section]}\n\n{TABLE}")
        for row in rows:
            cells = (row.id, row.level, row.party, row.versions, row.text.replace("|", "\\|"))
            parts.append(f"| {' | '.join(cells)} |\n")
    parts.append(CONFLICTS)
    parts += [f"| {row.id} | {row.topic} | {row.text} |\n" for row in conflicts().values()]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
