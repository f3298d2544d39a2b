"""docs/rehearsal.md lists the commands as they are offered."""

from __future__ import annotations

from pathlib import Path

from antiphon.rehearsal.drills import DRILLS
from antiphon.rehearsal.skills import make_skills

DOCUMENT = (Path(__file__).parents[2] / "docs" / "rehearsal.md").read_text()


def test_every_command_is_documented_and_no_other() -> None:
    rows = [line for line in DOCUMENT.splitlines() if line.startswith("| `/")]
    assert rows == [
        f"| `/{skill.name}` | {skill.description} | {skill.hint or ''} |"
        for skill in make_skills(may_exit=False).values()
    ]


def test_every_drill_is_documented() -> None:
    drills = DOCUMENT.partition("## Drills")[2]
    assert [word for word in DRILLS if f"`{word}" not in drills] == []
