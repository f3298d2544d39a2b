"""The bound on nesting: exact on JSON, whatever its strings hold, and cheap on what comes all the time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import TooDeep, TooManyValues
from antiphon.jsonrpc.structure import MAX_DEPTH, MAX_VALUES, check_structure, is_too_deep, is_too_wide

TEXT = st.text(alphabet='[]{}"\\,:a\u20ac', max_size=8)
VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@settings(deadline=None)
@given(VALUES, st.booleans())
def test_the_bound_is_exact_whatever_strings_hold(value: Any, spaced: bool) -> None:
    data = json.dumps(value, indent=1 if spaced else None, ensure_ascii=False).encode()
    for bound in (1, 2, 3, 5):
        assert is_too_deep(data, bound=bound) == (depth_of(value) > bound)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"\\"[":', b"}]")])
def test_the_bound_is_the_last_depth_that_is_taken(opening: bytes, closing: bytes) -> None:
    levels = opening.count(b"[", 0, 2) + opening.count(b"{")
    most = MAX_DEPTH // levels
    assert not is_too_deep(opening * most + b"1" + closing * most)
    assert is_too_deep(opening * (most + 1) + b"1" + closing * (most + 1))


def test_a_wide_value_is_not_a_deep_one() -> None:
    assert not is_too_deep(b"[" + b"[[{}]]," * 100_000 + b"1]")
    assert not is_too_deep(b'["' + b"[" * 100_000 + b'"]')


def test_the_error_names_the_bound() -> None:
    with pytest.raises(TooDeep) as refused:
        check_structure(b"[" * 500 + b"]" * 500)
    assert refused.value.to_wire().code == -32004
    assert refused.value.to_wire().data == {"reason": "limit", "limit": "depth", "most": MAX_DEPTH}


WIDE = {
    "arrays": b"[" + b"[]," * 300_000 + b"0]",
    "towers": b"[" + (b"[" * 100 + b"]" * 100 + b",") * 6_000 + b"0]",
    "numbers": b"[" + b"0," * 600_000 + b"0]",
    "keys": b"{" + b'"a":0,' * 600_000 + b'"b":0}',
    "strings": b"[" + b'"[",' * 2_000_000 + b'""]',
}


@pytest.mark.parametrize("data", WIDE.values(), ids=WIDE)
def test_a_frame_of_too_many_values_is_refused(data: bytes) -> None:
    with pytest.raises(TooManyValues) as refused:
        check_structure(data)
    assert refused.value.to_wire().data == {"reason": "limit", "limit": "values", "most": MAX_VALUES}


@pytest.mark.parametrize("inside", [b"[,{", b'\\",', b"\\\\,[", b'{\\"a\\":[0,0]},'])
def test_what_a_large_text_holds_does_not_count(inside: bytes) -> None:
    check_structure(b'{"jsonrpc":"2.0","params":{"text":"' + inside * 600_000 + b'"}}')


@settings(deadline=None)
@given(VALUES)
def test_values_are_counted_outside_of_strings_alone(value: Any) -> None:
    data = json.dumps(value, ensure_ascii=False).encode()
    marks = values_of(value)
    assert not is_too_wide(data, bound=marks)
    assert marks == 0 or is_too_wide(data, bound=marks - 1)


def values_of(value: Any) -> int:
    """The commas and opening brackets of a JSON text, outside of its strings."""
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(len(value) - 1, 0) + sum(map(values_of, inner))
