"""The members of public classes are a list that changes only on purpose."""

from __future__ import annotations

import re
from difflib import unified_diff

from tools.api_page import PAGE, page
from tools.public_members import LISTING, listing, members


def test_the_public_classes_have_exactly_the_listed_members() -> None:
    change = list(
        unified_diff(LISTING.read_text().splitlines(), listing().splitlines(), "listed", "found", n=1)
    )
    assert change == [], "\n".join(
        ["public members changed; if that is wanted, run `python -m tools.public_members`", *change]
    )


def test_the_page_of_public_names_lists_each_of_them() -> None:
    def names(text: str) -> list[str]:
        return re.findall(r"^(?:## |\| )`([\w.]+)`", text, re.M)

    assert names(PAGE.read_text()) == names(page()), "run `python -m tools.api_page`"


def test_each_kind_of_member_is_listed() -> None:
    class Shown:
        __module__ = "antiphon.shown"
        name: str

        def __init__(self) -> None:
            self.title: str | None = None
            self._secret = ""

        @property
        def size(self) -> int:
            return 1

        async def close(self) -> None: ...

        def _hidden(self) -> None: ...

    assert list(members(Shown)) == [
        "close(): async method",
        "name: attribute",
        "size: property",
        "title: attribute",
    ]
