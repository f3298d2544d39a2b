"""The members of public classes are a list that changes only on purpose."""

from __future__ import annotations

from difflib import unified_diff

from tools.public_members import LISTING, listing, members


def test_the_public_classes_have_exactly_the_listed_members() -> None:
    change = list(
        unified_diff(LISTING.read_text().splitlines(), listing().splitlines(), "listed", "found", n=1)
    )
    assert change == [], "\n".join(
        ["public members changed; if that is wanted, run `python -m tools.public_members`", *change]
    )


def test_each_kind_of_member_is_listed() -> None:
    class Shown:
        __module__ = "antiphon.shown"
        name: str

        @property
        def size(self) -> int:
            return 1

        async def close(self) -> None: ...

        def _hidden(self) -> None: ...

    assert list(members(Shown)) == ["close(): async method", "name: attribute", "size: property"]
