"""Each broken hub is failed for exactly its requirement, and the good one for none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from antiphon.conformance.hub.suite import check_place
from antiphon.conformance.options import Options
from antiphon.conformance.verdicts import Outcome, Report
from tests.conformance.broken.defect import Defect
from tests.conformance.defect_table import check_failed, defects_of
from tests.conformance.filtered_hub import FilteredPlace, FilteredUpstream, GoodHub
from tests.hub.running import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

TIMEOUT = 3.0
DEFECTS = defects_of("hub")
Hubs = dict[int, tuple[Served, FilteredUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hubs(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Hubs]:
    """Two running hubs with agents of the judge behind them: one agent speaks v1, the other v2."""
    upstreams = [await FilteredUpstream.listen(version=version, timeout=30.0) for version in (1, 2)]
    folders: list[Path] = [tmp_path_factory.mktemp("hub") for _ in upstreams]
    with (
        served(folders[0], "--share", agent=upstreams[0].command) as one,
        served(folders[1], "--share", agent=upstreams[1].command) as two,
    ):
        yield {1: (one, upstreams[0]), 2: (two, upstreams[1])}
    for upstream in upstreams:
        await upstream.aclose()


async def judged(hubs: Hubs, hub: GoodHub, version: int, options: Options) -> Report:
    running, upstream = hubs[version]
    place = FilteredPlace(running.acp, token=running.token, upstream=upstream, hub=hub)
    return await check_place(place, options, Report("hub", "", ()), version=version)


@pytest.mark.parametrize("version", [1, 2])
async def test_the_good_hub_keeps_every_requirement(hubs: Hubs, version: int) -> None:
    report = await judged(hubs, GoodHub(), version, Options(timeout=30.0))
    assert not report.faults
    assert [(each.requirement.id, each.evidence) for each in report.failures + report.warnings] == []
    assert report.of(Outcome.PASS)


@pytest.mark.parametrize(
    ("defect", "version"),
    [(each, version) for each in DEFECTS for version in each.versions],
    ids=[f"{each.name}-v{version}" for each in DEFECTS for version in each.versions],
)
async def test_a_broken_hub_is_failed_for_exactly_its_requirement(
    hubs: Hubs, defect: Defect, version: int
) -> None:
    report = await judged(hubs, defect.peer(), version, Options(timeout=TIMEOUT, **defect.options))
    check_failed(defect, version, report)
