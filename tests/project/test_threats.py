"""The page of threats names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threats.md").read_text()
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| (?!Tries |---)", line)]


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(tests/[^`]+)`", PAGE)
    assert len(named) > 40
    for name in named:
        path, _, test = name.partition("::")
        assert (ROOT / path).is_file(), name
        assert f"def {test}(" in (ROOT / path).read_text() or not test, name


def test_every_threat_has_a_bound_and_names_a_test() -> None:
    assert len(ROWS) > 40
    for row in ROWS:
        _, threat, bound, shown, _ = row.split("|")
        assert threat.strip()
        assert bound.strip()
        assert re.fullmatch(r"\s*`tests/[^`]+`(, `tests/[^`]+`)*\s*", shown), shown
