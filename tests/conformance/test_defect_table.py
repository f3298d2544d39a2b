"""The page of broken peers has each of them, and enough of them."""

from __future__ import annotations

import pytest

from tests.conformance.defect_table import PAGE, PARTIES, defects_of

ENOUGH = 80


@pytest.mark.parametrize("party", PARTIES)
def test_the_page_has_every_broken_peer(party: str) -> None:
    rows = PAGE.read_text(encoding="utf-8")
    for defect in defects_of(party):
        for version in defect.versions:
            assert f"| {defect.text} | {defect.requirement} | {version} |" in rows


def test_there_are_enough_of_them() -> None:
    assert sum(len(defects_of(party)) for party in PARTIES) >= ENOUGH
