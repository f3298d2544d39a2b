"""The keys of a permission's options. `tests/web/controls.test.mjs` has the same table for the page."""

from __future__ import annotations

import pytest

from antiphon.schema import v2
from antiphon.transcripts import option_for, option_keys


def offered(*kinds: str) -> list[v2.PermissionOption]:
    return [
        v2.PermissionOption(
            option_id=v2.PermissionOptionId(str(at)), name=kind, kind=v2.PermissionOptionKind(kind)
        )
        for at, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    ("kinds", "keys"),
    [
        (["reject_always", "allow_always", "allow_once", "allow_always", "reject_once"], "N a y - n"),
        (["allow_once", "allow_once", "reject_always", "odd"], "y - n -"),
        ([], ""),
    ],
)
def test_each_option_has_the_key_of_its_kind(kinds: list[str], keys: str) -> None:
    assert " ".join(key or "-" for key in option_keys(offered(*kinds))) == keys


def test_a_key_never_grants_more_than_it_says_and_both_no_keys_reject() -> None:
    always = offered("allow_always", "reject_always")
    assert [option_for(key, always) for key in "yanN?"] == [None, always[0], always[1], always[1], None]
    once = offered("reject_once", "allow_once")
    assert [option_for(key, once) for key in "yanN"] == [once[1], None, once[0], once[0]]
