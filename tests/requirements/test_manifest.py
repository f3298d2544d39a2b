"""Every MUST and SHOULD that binds an agent or a client has a test that carries its id, or a line in
`pending.tsv` that says what it waits for. Those of the unstable schema are no exception.

`catalogue.tsv` lists the requirements by id, level, who they bind, versions and section.
`seed_differences.tsv` does so for section 25, whose rows have no level: what a side has to do about one
counts as a MUST. The sentences of the seeds themselves stand in `seeds.tsv`, which `test_seeds.py` checks.
A test names the ids it shows in its own name (`test_rpc_40_…`). Both directions hold: an id that nobody
knows, a pending line for something already shown, and something the project is held to and that is not
shown are all errors.
"""

from __future__ import annotations

import csv
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def table(name: str) -> list[dict[str, str]]:
    with (HERE / name).open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


CATALOGUE = {row["id"]: row for row in (*table("catalogue.tsv"), *table("seed_differences.tsv"))}
PENDING = {row["id"]: row["waits for"] for row in table("pending.tsv")}
PREFIXES = sorted(
    {id.rpartition("-")[0].lower().replace("-", "_") for id in CATALOGUE}, key=len, reverse=True
)
ID_IN_NAME = re.compile(rf"(?<![a-z0-9])({'|'.join(PREFIXES)})_(\d+)(?![a-z0-9])")


def ids_in(name: str) -> set[str]:
    """The requirement ids that a test's name carries."""
    return {f"{prefix}-{number}".upper().replace("_", "-") for prefix, number in ID_IN_NAME.findall(name)}


def shown() -> dict[str, list[str]]:
    """Each id, and the tests that show it."""
    found: dict[str, list[str]] = {}
    for path in HERE.parent.rglob("test_*.py"):
        for name in re.findall(r"^\s*(?:async )?def (test_\w+)", path.read_text(), re.M):
            for id in ids_in(name):
                found.setdefault(id, []).append(f"{path.name}::{name}")
    return found


def pending(id: str) -> bool:
    return any(fnmatchcase(id, pattern) for pattern in PENDING)


def held(row: dict[str, str]) -> bool:
    """Whether the project is held to this requirement: as an agent and as a client, not as a proxy."""
    return row["who"] in ("agent", "client", "both") and row["level"] in ("MUST", "SHOULD")


def missing(done: dict[str, list[str]]) -> list[str]:
    return [id for id, row in CATALOGUE.items() if held(row) and id not in done and not pending(id)]


def test_everything_the_project_is_held_to_is_shown_or_waits_for_something_named() -> None:
    assert missing(shown()) == []


def test_a_must_whose_test_is_removed_is_noticed() -> None:
    done = shown()
    musts = [id for id, row in CATALOGUE.items() if held(row) and id in done]
    assert {"RPC-40", "SESS-03", "TC-02", "SD-30"} <= set(musts), "an agent's"
    assert {"INIT-01", "PROMPT-V2-52", "PERM-V1-03", "SD-14"} <= set(musts), "a client's"
    assert {"SESS-45", "PROMPT-V2-39", "CONT-07", "TC-07"} <= set(musts), "what a client should do"
    for id in musts:
        assert missing({other: tests for other, tests in done.items() if other != id}) == [id]


def test_a_pending_line_that_is_removed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    done = shown()
    for pattern in list(PENDING):
        held_back = [id for id, row in CATALOGUE.items() if held(row) and fnmatchcase(id, pattern)]
        with monkeypatch.context() as patch:
            patch.delitem(PENDING, pattern)
            assert missing(done) == held_back


def test_no_test_names_a_requirement_that_does_not_exist() -> None:
    assert sorted(set(shown()) - set(CATALOGUE)) == []


def test_nothing_waits_that_is_already_shown_or_does_not_exist() -> None:
    done = shown()
    for pattern in PENDING:
        matching = [id for id in CATALOGUE if fnmatchcase(id, pattern)]
        assert matching, pattern
        assert [id for id in matching if id in done] == []


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("test_rpc_40_rpc_41_x", {"RPC-40", "RPC-41"}),
        ("test_prompt_v2_17_x", {"PROMPT-V2-17"}),
        ("test_5_mb_of_stderr", set()),
    ],
)
def test_ids_are_read_from_names(name: str, ids: set[str]) -> None:
    assert ids_in(name) == ids


def test_the_catalogue_is_whole() -> None:
    assert len(table("catalogue.tsv")) == 522
    assert len(table("seed_differences.tsv")) == 30
    assert len(CATALOGUE) == 552
