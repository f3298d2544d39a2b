"""docs/extensions.md has the tables of our own protocol, and the sources use no other names of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.extensions_page import PAGE, not_shown, own_names, written

SOURCE = Path(__file__).parents[2] / "src" / "antiphon"
NAME = re.compile(r"(?<![\w.])_antiphon[/_]\w+")


def unknown_names(text: str) -> set[str]:
    return set(NAME.findall(text)) - own_names()


def test_the_tables_are_those_of_the_structs() -> None:
    page = PAGE.read_text()
    assert written(page) == page, "run `python -m tools.extensions_page`"


def test_every_method_update_and_object_has_a_table() -> None:
    assert not_shown(PAGE.read_text()) == set()


@pytest.mark.parametrize("there", ["`delivery`?", "`_antiphon/inject` |", "Queue a prompt."])
def test_a_table_that_differs_is_seen(there: str) -> None:
    page = PAGE.read_text()
    changed = page.replace(there, "something else")
    assert changed != page
    assert written(changed) == page


def test_a_struct_without_a_table_is_seen() -> None:
    page = PAGE.read_text()
    assert not_shown(page.replace("<!-- fields: PromptMeta -->", "")) == {"PromptMeta"}


@pytest.mark.parametrize("kind", ["py", "js"])
def test_the_sources_name_only_what_the_schema_has(kind: str) -> None:
    files = list(SOURCE.rglob(f"*.{kind}"))
    assert files
    found = {
        str(path.relative_to(SOURCE)): names for path in files if (names := unknown_names(path.read_text()))
    }
    assert found == {}


def test_an_unknown_name_is_seen() -> None:
    code = 'call("_antiphon/inject"); call("_antiphon/unheard_of"); update == "_antiphon_nothing"'
    assert unknown_names(code) == {"_antiphon/unheard_of", "_antiphon_nothing"}
