"""`seeds.tsv` has a row for every sentence of the five seeds that can be tried, and the tests that show it.

A sentence, a clause or an example is a row when a peer can do something and see on the wire, in the library
or in the kept journal whether it holds. Sentences about motives, other proposals, process, other projects
and history are not rows. The text of a row is ours; no sentence of a seed is quoted.

| Column | Meaning |
|---|---|
| `id` | `S`, the seed, and the number of the row in it; the numbers have no gaps |
| `says` | the sentence in our own words |
| `dialects` | where it applies: `all`, or some of `DIALECTS` |
| `agent`, `client`, `hub` | the tests that show it in this place, as node ids; `-` where it does not apply |
| `same` | the row of another sentence that says the same; then the other columns are `-` |

The tests of a place together cover all dialects of the row. The tests in `test_seed_*.py` say by their
parameters where and in which dialects they run. For any other test the folder says the place, and the row
says the dialects behind an `@`: `tests/client/test_x.py::test_y@v1,v2`.
"""

from __future__ import annotations

import ast
import csv
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, structs

from tests.requirements.seed_places import DIALECTS, PLACES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ROWS = {"000": 67, "001": 36, "002": 61, "003": 25, "004": 47}
"""How many sentences of each seed can be tried. A row that vanishes is noticed by this."""
FOLDERS = {
    "tests/agent/": "agent",
    "tests/client/": "client",
    "tests/hub/": "hub",
    "tests/requirements/test_agent_": "agent",
    "tests/requirements/test_client_": "client",
}
"""Where the tests run whose files begin like this."""


class Row(Struct, frozen=True):
    id: str
    seed: str
    says: str
    dialects: str
    agent: str
    client: str
    hub: str
    same: str

    def shown_in(self, place: str) -> str:
        return str(getattr(self, place))


def rows() -> list[Row]:
    with (HERE / "seeds.tsv").open(newline="") as file:
        return [Row(**row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


class Shown(Struct, frozen=True):
    """Where a test runs, and in which dialects."""

    places: frozenset[str]
    dialects: frozenset[str]


@cache
def functions_in(path: str) -> frozenset[str]:
    """The names of the tests in a file."""
    if not (ROOT / path).is_file():
        return frozenset()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def expand(dialects: str) -> frozenset[str]:
    return frozenset(DIALECTS if dialects == "all" else dialects.split(","))


def describe(node: str) -> Shown | str:
    """What a node id of a row shows, or what is wrong with it."""
    name, _, claimed = node.partition("@")
    path, _, test = name.partition("::")
    if not test.startswith("test_") or test not in functions_in(path):
        return f"there is no test {name}"
    if path.startswith("tests/requirements/test_seed_"):
        return f"{node}: its parameters say the dialects" if claimed else declared(path, test)
    place = next((place for prefix, place in FOLDERS.items() if path.startswith(prefix)), None)
    if place is None:
        return f"{path} is a test of no place"
    if not claimed or not expand(claimed) <= set(DIALECTS):
        return f"{node}: say its dialects behind an @"
    return Shown(frozenset([place]), expand(claimed))


@cache
def declared(path: str, test: str) -> Shown:
    """What the parameters of a test say; `PLACE` of its file says the place where no parameter does."""
    module = import_module(path.removesuffix(".py").replace("/", "."))
    marks = getattr(getattr(module, test), "pytestmark", [])
    given: dict[str, Any] = {mark.args[0]: mark.args[1] for mark in marks if mark.name == "parametrize"}
    places = given.get("place", getattr(module, "PLACE", ()))
    named = [places] if isinstance(places, str) else places
    return Shown(frozenset(place.partition("-")[0] for place in named), frozenset(given.get("dialect", ())))


def problems(table: Iterable[Row]) -> list[str]:
    """Everything that is wrong with the rows."""
    table = list(table)
    found = [
        f"{id} is there {times} times" for id, times in Counter(row.id for row in table).items() if times > 1
    ]
    for seed, count in ROWS.items():
        ids = [row.id for row in table if row.seed == seed]
        if sorted(set(ids)) != [f"S{seed}-{number:02}" for number in range(1, count + 1)]:
            found.append(f"seed {seed} has not the rows 1 to {count}")
    found += [f"{row.id}: there is no seed {row.seed}" for row in table if row.seed not in ROWS]
    known = {row.id: row for row in table}
    for row in table:
        found += [f"{row.id}: {problem}" for problem in _problems_of(row, known)]
    return found


def _problems_of(row: Row, known: dict[str, Row]) -> list[str]:
    cells = {place: row.shown_in(place) for place in PLACES}
    if not row.says.strip():
        return ["it says nothing"]
    if row.same != "-":
        told = known.get(row.same)
        if told is None or told.same != "-":
            return [f"{row.same} is no row with tests"]
        return ["it has tests and another row"] if {*cells.values(), row.dialects} != {"-"} else []
    wanted = expand(row.dialects)
    if not wanted <= set(DIALECTS):
        return [f"unknown dialects {sorted(wanted - set(DIALECTS))}"]
    if set(cells.values()) == {"-"}:
        return ["it applies nowhere"]
    return [
        problem for place, cell in cells.items() if cell != "-" for problem in _lacking(place, cell, wanted)
    ]


def _lacking(place: str, cell: str, wanted: frozenset[str]) -> list[str]:
    if not cell.split():
        return [f"no test in the place {place}"]
    described = [describe(node) for node in cell.split()]
    wrong = [each for each in described if isinstance(each, str)]
    shown = [each for each in described if isinstance(each, Shown)]
    wrong += [f"{node} does not run in the place {place}"
              for node, each in zip(cell.split(), described, strict=True)
              if isinstance(each, Shown) and place not in each.places]  # fmt: skip
    missing = wanted.difference(*(each.dialects for each in shown))
    return wrong + ([f"{place} is not shown in {sorted(missing)}"] if missing else [])


def test_every_sentence_has_tests_in_its_places_and_dialects() -> None:
    assert problems(rows()) == []


def test_every_test_of_the_seeds_shows_a_sentence() -> None:
    named = {
        node.partition("@")[0] for row in rows() for place in PLACES for node in row.shown_in(place).split()
    }
    files = [f"tests/requirements/{path.name}" for path in sorted(HERE.glob("test_seed_*.py"))]
    written = {f"{path}::{test}" for path in files for test in functions_in(path) if test.startswith("test_")}
    assert sorted(written - named) == []


NOT_THERE = "tests/requirements/test_seed_client.py::test_a_cancel_names_the_message_of_its_turn"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"agent": "tests/agent/test_turns.py::test_nobody_wrote@v1"}, "there is no test"),
        ({"agent": ""}, "no test in the place agent"),
        ({"agent": NOT_THERE}, "does not run in the place agent"),
        ({"agent": "tests/bridge/test_laws.py::test_the_models_can_tell_a_difference@v1"}, "of no place"),
        ({"agent": "-", "client": "-", "hub": "-"}, "applies nowhere"),
        ({"dialects": "v3"}, "unknown dialects"),
        ({"dialects": "all", "agent": "-", "hub": "-"}, "is not shown in"),
        ({"id": "S003-02"}, "is there 2 times"),
        ({"says": " "}, "says nothing"),
        ({"same": "S003-02"}, "tests and another row"),
        ({"seed": "009"}, "there is no seed"),
    ],
)
def test_a_row_that_is_wrong_is_noticed(change: dict[str, str], problem: str) -> None:
    table = [structs.replace(row, **change) if row.id == "S003-01" else row for row in rows()]
    assert any(problem in each for each in problems(table)), problems(table)


def test_a_row_that_is_missing_is_noticed() -> None:
    table = rows()
    for missing in (table[0], table[-1]):
        assert problems(row for row in table if row is not missing)
