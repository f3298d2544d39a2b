"""The broken peers, the check that each is failed for its requirement, and the table of all of them.

`python -m tests.conformance.defect_table` judges them all and writes docs/defects.md.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tests.conformance.broken as broken
from antiphon.conformance.verdicts import Report
from tests.conformance.broken.defect import Defect

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "defects.md"
NOTED = "ANTIPHON_TEST_DEFECTS"
"""A variable with the file to which tests append what they saw, a line of JSON each."""
PARTIES = ("agent", "client", "hub")
HEAD = """# Broken peers and what they are failed for

The tests of the judge have deliberately broken agents, clients and hubs. Each has one defect, as a small
difference to a good peer, and is failed for exactly the requirement named here; the evidence is the judge's
own sentence. The tests write this page: `python -m tests.conformance.defect_table`.
"""


def defects_of(party: str) -> list[Defect]:
    """Return the broken peers of a party, in the order of their modules."""
    names = sorted(module.name for module in pkgutil.iter_modules(broken.__path__))
    modules = [name for name in names if name.startswith(f"{party}s_")]
    found = [importlib.import_module(f"{broken.__name__}.{name}").defects.all for name in modules]
    return [defect for defects in found for defect in defects]


def check_failed(defect: Defect, version: int, report: Report) -> None:
    """Check that a report breaks exactly the requirement of a defect, with evidence."""
    assert not report.faults
    found = (*report.failures, *report.warnings)
    assert {verdict.requirement.id for verdict in found} == {defect.requirement, *defect.also}
    for verdict in found:
        assert verdict.evidence.expected
        assert verdict.evidence.frames, "a failure shows the frames that prove it"
    if NOTED in os.environ:
        said = next(each.evidence.expected for each in found if each.requirement.id == defect.requirement)
        row = (report.party, defect.text, defect.requirement, version, said)
        with open(os.environ[NOTED], "a", encoding="utf-8") as noted:
            noted.write(json.dumps(row) + "\n")


def write_page() -> int:
    """Run the tests of broken peers and write the page from what they noted."""
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "rows"
        tests = [str(ROOT / "tests" / "conformance" / f"test_broken_{party}s.py") for party in PARTIES]
        command = [sys.executable, "-m", "pytest", "-q", "-n", "4", *tests]
        code = subprocess.run(
            command, cwd=ROOT, env={**os.environ, NOTED: str(noted)}, check=False
        ).returncode
        if code:
            return code
        rows = [json.loads(line) for line in noted.read_text(encoding="utf-8").splitlines()]
    order = {defect.text: place for party in PARTIES for place, defect in enumerate(defects_of(party))}
    lines = [HEAD]
    for party in PARTIES:
        mine = sorted((row for row in rows if row[0] == party), key=lambda row: (order[row[1]], row[3]))
        lines.append(f"\n## Broken {party}s: {len({row[1] for row in mine})}\n")
        lines.append("| Defect | Requirement | ACP | Evidence |\n|---|---|---|---|")
        lines += [
            f"| {text} | {id} | {version} | {said.replace('|', chr(92) + '|')} |"
            for _, text, id, version, said in mine
        ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(write_page())
