"""The simulation of docs/scale.md: it repeats itself, loses no session, and the page shows what it writes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from random import Random

import pytest
from tools.scale import growth
from tools.scale.__main__ import PAGE, PLOTS
from tools.scale.clockwork import Cores, Places, Process, Simulation
from tools.scale.costs import Cost, Costs, load
from tools.scale.fanout import followed, one_session
from tools.scale.placement import POLICIES, fullest
from tools.scale.plot import Axis, Line, plot
from tools.scale.report import renewed, report
from tools.scale.takeover import Storm, storm_outcome

COSTS = load()
STORMS = [
    Storm(sessions=200),
    Storm(sessions=200, jitter=False, parallel=None),
    Storm(sessions=200, survivors=9, clients_first=False, start_all=False),
    Storm(sessions=200, parallel=1, only_clients=True),
]


@pytest.mark.parametrize("storm", STORMS)
def test_a_storm_repeats_itself_with_its_seed(storm: Storm) -> None:
    assert storm_outcome(storm, COSTS, seed=1) == storm_outcome(storm, COSTS, seed=1)
    assert storm_outcome(storm, COSTS, seed=1) != storm_outcome(storm, COSTS, seed=2)


@pytest.mark.parametrize("storm", STORMS)
def test_every_session_is_owned_once_after_a_storm(storm: Storm) -> None:
    outcome = storm_outcome(storm, COSTS, seed=3)
    sessions = outcome.waited_for if storm.only_clients else set(range(storm.sessions))
    assert set(outcome.owners) == set(outcome.ready) == sessions
    assert outcome.claimed == len(sessions)
    assert set(outcome.owners.values()) <= set(range(storm.survivors))


@pytest.mark.parametrize("storm", STORMS)
def test_no_session_is_back_before_the_lease_can_end(storm: Storm) -> None:
    outcome = storm_outcome(storm, COSTS, seed=4)
    assert min(outcome.ready.values()) >= storm.lease * 2 / 3
    assert outcome.starting <= (storm.parallel or storm.sessions)


def test_a_storm_takes_at_least_the_work_of_its_agents() -> None:
    storm = Storm(sessions=100, survivors=1, cores=2, agent_cpu=1.0)
    outcome = storm_outcome(storm, COSTS, seed=5)
    assert outcome.within(100) >= storm.lease * 2 / 3 + 50


def test_clients_that_are_back_wait_less_if_their_sessions_come_first() -> None:
    first, not_first = (
        storm_outcome(Storm(clients_first=each), COSTS, seed=6).clients_within(99) for each in (True, False)
    )
    assert first < not_first


def test_cores_are_shared_equally() -> None:
    simulation, ended = Simulation(), dict[str, float]()
    cores = Cores(simulation, 2)

    def task(name: str, seconds: float) -> Process:
        yield cores.work(seconds)
        ended[name] = simulation.now

    for name, seconds in (("a", 1.0), ("b", 1.0), ("c", 2.0), ("d", 4.0)):
        simulation.begin(task(name, seconds))
    simulation.run()
    # Four tasks on two cores run at half speed until a and b end; then each has a core.
    assert ended == pytest.approx({"a": 2.0, "b": 2.0, "c": 3.0, "d": 5.0})
    assert cores.used == 8.0


def test_places_go_to_those_who_are_first_and_then_in_order() -> None:
    simulation, order = Simulation(), list[str]()
    places = Places(simulation, 1)

    def visit(name: str, *, first: bool) -> Process:
        yield places.first if first else places
        order.append(name)
        yield 1.0
        places.leave()

    for name in "abcD":
        simulation.begin(visit(name, first=name.isupper()))
    simulation.run()
    assert order == ["a", "D", "b", "c"]
    assert simulation.now == 4.0


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_placement_loses_no_session(policy: object) -> None:
    assert callable(policy)
    one, other = (fullest(policy, sessions=300, hubs=7, random=Random(8)) for _ in range(2))
    assert one == other
    assert all(count >= 0 for count in one[1])
    assert 200 < sum(one[1]) < 400  # 300 are open on average
    assert one[0] >= 1.0


def test_every_client_is_at_a_hub_and_every_strange_hub_has_one_consumer() -> None:
    load = one_session(COSTS, clients=90, hubs=3, rate=1.0, random=Random(9))
    assert 30 <= load.clients <= 90
    assert load.nats_bytes == pytest.approx(2 * COSTS["event_disk_alone"])
    nobody = followed(COSTS, sessions=50, clients_each=2.0, hubs=8, stray=0.0, random=Random(9))
    everybody = followed(COSTS, sessions=50, clients_each=2.0, hubs=8, stray=1.0, random=Random(9))
    assert nobody.consumers == 0 < everybody.consumers <= 50 * 7


def test_a_larger_installation_needs_more_of_everything() -> None:
    small, large = (growth.size(sessions, COSTS) for sessions in (10_000, 1_000_000))
    assert all(more >= less for less, more in zip(small, large, strict=True))
    assert growth.event_disk(COSTS, 1) == pytest.approx(COSTS["event_disk_alone"])
    assert growth.event_disk(COSTS, 64) == pytest.approx(COSTS["event_disk_batched"])


def test_a_plot_is_well_formed_and_keeps_its_points_inside() -> None:
    lines = [Line("a <b>", [(1.0, 3.0), (900.0, 12_000.0)]), Line("c & d", [(2.0, 1.0)])]
    for axis in (Axis("x", log=True), Axis("x")):
        picture = ElementTree.fromstring(plot("T <&>", axis, Axis("y (s)", log=True), lines))
        words = Counter(each.text for each in picture.iter("{http://www.w3.org/2000/svg}text"))
        assert {"T <&>", "x", "y (s)", "a <b>", "c & d"} <= set(words)
        _, _, width, height = map(float, picture.attrib["viewBox"].split())
        drawn = [
            each.attrib["d"][1:].split("L")
            for each in picture.iter("{http://www.w3.org/2000/svg}path")
            if each.attrib["class"].startswith("line") and "h" not in each.attrib["d"]
        ]
        places = [tuple(map(float, place.split())) for path in drawn for place in path]
        assert len(places) == 3
        assert all(0 < x < width and 0 < y < height for x, y in places)


def test_the_page_shows_the_tables_and_plots_of_the_measured_costs() -> None:
    made = report(COSTS)
    page = PAGE.read_text()
    assert renewed(page, made.tables) == page, "run `make sim-scale`"
    assert {path.stem: path.read_text() for path in PLOTS.glob("*.svg")} == made.plots, "run `make sim-scale`"
    for name in made.tables:
        assert f"<!-- scale: {name} -->" in page
    for name in made.plots:
        assert f"(scale/{name}.svg)" in page


def test_other_costs_make_another_page() -> None:
    dearer = Costs(
        COSTS.machine, {name: Cost(2 * cost.value, *cost[1:]) for name, cost in COSTS.table.items()}
    )
    made = report(dearer)
    assert renewed(PAGE.read_text(), made.tables) != PAGE.read_text()
