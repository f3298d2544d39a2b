"""`make verdicts`: Antiphon itself breaks nothing, and notes are about peers and requirements that exist."""

from __future__ import annotations

from tools.verdicts.judging import judge, own_folder
from tools.verdicts.notes import read_notes
from tools.verdicts.peers import ALL, OURS

from antiphon.conformance import Outcome
from antiphon.conformance.requirements import requirements

PASSED = 200
"""The built-in agent is seen to keep more requirements than this, in both versions together."""


async def test_antiphons_agent_as_a_process_breaks_no_must_in_either_version() -> None:
    with own_folder() as folder:
        report = await judge(OURS[0], folder)
    assert not report.faults
    assert [(each.requirement.id, each.version, each.evidence) for each in report.failures] == []
    assert report.versions == (1, 2)
    assert report.counts()[Outcome.PASS] > PASSED


def test_notes_name_peers_and_requirements_that_exist() -> None:
    names = {peer.name for peer in ALL}
    for peer, id in read_notes():
        assert peer in names
        assert id in requirements()
