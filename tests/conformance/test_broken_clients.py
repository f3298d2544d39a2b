"""Each broken client is failed for exactly its requirement, and the good ones for none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from msgspec import structs

import tests.conformance.broken as broken
from antiphon.conformance.client.suite import check_client
from antiphon.conformance.options import Options
from antiphon.conformance.verdicts import Outcome
from tests.conformance.broken.defect import Defect
from tests.conformance.defect_table import NOTED, check_failed, defects_of
from tests.conformance.good.client import GoodClient, PatientClient

OPTIONS = Options(timeout=1.0, jobs=8)
EVERY = 1 if NOTED in os.environ else 8
"""Each eighth client is judged by the whole suite, the others by scenarios about their requirement: a suite
starts a hundred processes. `python -m tests.conformance.defect_table` judges all of them by all of it."""
START = Path(broken.__file__).with_name("start_client.py")
DEFECTS = defects_of("client")


def command(client: type[GoodClient]) -> list[str]:
    """The command that starts a client. Without `site` it starts faster."""
    return [sys.executable, "-S", str(START), client.__module__, client.__name__]


@pytest.mark.parametrize("client", [GoodClient, PatientClient])
async def test_a_good_client_keeps_every_requirement(client: type[GoodClient]) -> None:
    report = await check_client(command(client), OPTIONS)
    assert not report.faults
    assert [(each.requirement.id, each.evidence) for each in report.failures + report.warnings] == []
    assert {verdict.version for verdict in report.of(Outcome.PASS)} == {1, 2}


@pytest.mark.parametrize(
    ("defect", "version"),
    [(each, version) for each in DEFECTS for version in each.versions],
    ids=[f"{each.name}-v{version}" for each in DEFECTS for version in each.versions],
)
async def test_a_broken_client_is_failed_for_exactly_its_requirement(defect: Defect, version: int) -> None:
    whole = DEFECTS.index(defect) % EVERY == 0
    options = structs.replace(OPTIONS, only=() if whole else (defect.requirement, *defect.also))
    report = await check_client(command(defect.peer), options, versions=(version,))
    check_failed(defect, version, report)
