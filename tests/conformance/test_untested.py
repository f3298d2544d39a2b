"""Every binding requirement is decided by the judge, or listed with the reason why it is not."""

from __future__ import annotations

import pytest

from antiphon.conformance.suites import PARTIES, suite
from antiphon.conformance.untested import binding, untested


@pytest.mark.parametrize("party", PARTIES)
def test_every_requirement_is_decided_or_has_a_reason(party: str) -> None:
    judged = suite(party)
    decided = {*judged.requirements(1), *judged.requirements(2)}
    rows = {row.id for row in binding(party)}
    assert sorted(rows - decided - untested(party).keys()) == [], "decided by nothing, and without a reason"
    assert sorted(untested(party).keys() & decided) == [], "listed as not tested, and decided"
    assert sorted(untested(party).keys() - rows) == [], "no requirement of this party"


@pytest.mark.parametrize("party", PARTIES)
def test_reasons_are_sentences(party: str) -> None:
    assert all(reason[0].isupper() and reason.endswith(".") for reason in untested(party).values())
