"""Every MUST and SHOULD that binds an agent or a client has a test, or a line in `pending.tsv` with a reason.

The catalogue is `antiphon.conformance.requirements`. A test names the requirements it shows in its mark:
`@requirement("RPC-40", "RPC-41")`. The checks go both ways: an id that the catalogue does not have, a pending
line for a requirement that has a test, and a required id without test or pending line are all errors.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
from tools.requirements_page import PAGE, page

from antiphon.conformance.requirements import Requirement, conflicts, requirements

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CATALOGUE = requirements()
KNOWN = {*CATALOGUE, *conflicts()}
PREFIXES = sorted({id.rpartition("-")[0] for id in KNOWN}, key=len, reverse=True)
ID = re.compile(rf"(?<![\w/-])(?:{'|'.join(PREFIXES)})-\d\d(?![\w-])")
TEST = re.compile(r"^\s*(?:async )?def (test_\w+)", re.M)


def pending_lines() -> dict[str, str]:
    with (HERE / "pending.tsv").open() as file:
        return {row["id"]: row["waits for"] for row in csv.DictReader(file, delimiter="\t")}


PENDING = pending_lines()


def marked(source: str) -> dict[str, list[str]]:
    """Return the ids in the `@requirement` marks of a test file, by the name of the test."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
            continue
        for mark in node.decorator_list:
            if (
                isinstance(mark, ast.Call)
                and isinstance(mark.func, ast.Name)
                and mark.func.id == "requirement"
            ):
                found.setdefault(node.name, []).extend(ast.literal_eval(each) for each in mark.args)
    return found


@cache
def shown() -> Mapping[str, list[str]]:
    """Return the tests that show each id."""
    found: dict[str, list[str]] = {}
    for path in HERE.parent.rglob("test_*.py"):
        source = path.read_text()
        for name, ids in marked(source).items() if "requirement(" in source else ():
            for id in ids:
                found.setdefault(id, []).append(f"{path.name}::{name}")
    return found


def pending(id: str) -> bool:
    return any(fnmatchcase(id, pattern) for pattern in PENDING)


def required(row: Requirement) -> bool:
    """Return whether the project has to show this requirement: as agent and as client, not as proxy."""
    return row.party in ("agent", "client", "both") and row.level in ("MUST", "SHOULD")


def missing(done: Mapping[str, list[str]]) -> list[str]:
    return [id for id, row in CATALOGUE.items() if required(row) and id not in done and not pending(id)]


def test_every_requirement_has_a_test_or_a_pending_line() -> None:
    assert missing(shown()) == []


def test_a_must_whose_test_is_removed_is_noticed() -> None:
    done = shown()
    musts = [id for id, row in CATALOGUE.items() if required(row) and id in done]
    assert {"RPC-40", "SESS-03", "TC-02", "SD-30"} <= set(musts), "of an agent"
    assert {"INIT-01", "PROMPT-V2-52", "PERM-V1-03", "SD-14"} <= set(musts), "of a client"
    assert {"SESS-45", "PROMPT-V2-39", "CONT-07", "TC-07"} <= set(musts), "what a client should do"
    for id in musts:
        assert missing({other: tests for other, tests in done.items() if other != id}) == [id]


def test_a_pending_line_that_is_removed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    done = shown()
    for pattern in list(PENDING):
        held_back = [id for id, row in CATALOGUE.items() if required(row) and fnmatchcase(id, pattern)]
        with monkeypatch.context() as patch:
            patch.delitem(PENDING, pattern)
            assert missing(done) == held_back


def test_no_mark_names_a_requirement_that_does_not_exist() -> None:
    assert sorted(set(shown()) - KNOWN) == []


def test_no_pending_line_is_shown_or_unknown() -> None:
    done = shown()
    for pattern in PENDING:
        matching = [id for id in CATALOGUE if fnmatchcase(id, pattern)]
        assert matching, pattern
        assert [id for id in matching if id in done] == []


def unknown_ids(text: str) -> list[str]:
    return sorted(set(ID.findall(text)) - KNOWN)


@pytest.mark.parametrize("folder", ["src", "tests", "docs", "examples", "bench", "tools"])
def test_every_id_that_a_file_names_is_in_the_catalogue(folder: str) -> None:
    unknown = {
        str(path.relative_to(ROOT)): ids
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".md", ".js", ".tsv") and path != Path(__file__)
        if (ids := unknown_ids(path.read_text()))
    }
    assert unknown == {}


def test_an_unknown_id_is_noticed() -> None:
    assert unknown_ids("# RPC-40, RPC-99 and PROMPT-V2-77, not SHA-256") == ["PROMPT-V2-77", "RPC-99"]


def test_ids_are_read_from_marks() -> None:
    source = '@requirement("RPC-40", "RPC-41")\n@slow\nasync def test_a(): ...\ndef test_b(): ...\n'
    assert marked(source) == {"test_a": ["RPC-40", "RPC-41"]}


def test_no_test_has_an_id_in_its_name() -> None:
    prefixes = "|".join(prefix.lower().replace("-", "_") for prefix in PREFIXES)
    carried = re.compile(rf"(?<![a-z0-9])(?:{prefixes})_\d\d(?![a-z0-9])")
    names = [name for path in HERE.parent.rglob("test_*.py") for name in TEST.findall(path.read_text())]
    assert [name for name in names if carried.search(name)] == []


def test_the_catalogue_is_complete() -> None:
    seeds = [id for id in CATALOGUE if id.startswith("SD-")]
    assert (len(CATALOGUE) - len(seeds), len(seeds), len(conflicts())) == (522, 30, 22)
    for row in CATALOGUE.values():
        assert row.level in ("MUST", "SHOULD", "MAY"), row.id
        assert row.party in ("agent", "client", "both", "proxy"), row.id
        assert re.fullmatch(r"(v1|v2|v1\+v2|v1-unst|v2-unst|unst|seed)", row.versions), row.id
    for row in (*CATALOGUE.values(), *conflicts().values()):
        assert row.text.endswith("."), row.id
        assert len(row.text.split()) > 4, row.id


def test_the_ids_of_a_prefix_have_no_gap() -> None:
    for prefix in PREFIXES:
        numbers = [int(id.rpartition("-")[2]) for id in KNOWN if id.rpartition("-")[0] == prefix]
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), prefix


def test_the_page_of_requirements_is_made_from_the_catalogue() -> None:
    assert PAGE.read_text() == page(), "docs/requirements.md is old: run python -m tools.requirements_page"
