"""What a form asks for, and which answers fit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.engine.forms.form import LONGEST_TEXT, Form, UnknownField
from antiphon.schema import v2
from antiphon.schema.repair import repair
from tests.requirements.marks import requirement


def form(properties: dict[str, Any], **more: Any) -> Form:
    raw = {"type": "object", "properties": properties, **more}
    return Form(repair(2).build(v2.ElicitationSchema, raw))


@requirement("ELIC-19")
@pytest.mark.parametrize(
    ("format", "value", "fits"),
    [
        ("email", "a@b", True),
        ("email", "a", False),
        ("email", "a @b", False),
        ("uri", "https://example.com/x?y#z", True),
        ("uri", "mailto:a@b", True),
        ("uri", "example.com", False),
        ("uri", "https://exa mple.com", False),
        ("uri", "http://[", False),
        ("date", "2024-02-29", True),
        ("date", "2023-02-29", False),
        ("date", "20240229", False),
        ("date", "2024-W01-1", False),
        ("date-time", "2024-02-29T12:00:00Z", True),
        ("date-time", "2024-02-29t12:00:00.123456789+01:00", True),
        ("date-time", "2024-02-29T12:00:00", False),
        ("date-time", "2024-02-30T12:00:00Z", False),
        ("date-time", "2024-02-29", False),
        ("hostname", "anything at all", True),
    ],
)
def test_only_the_formats_that_are_known_are_checked(format: str, value: str, fits: bool) -> None:
    found = form({"a": {"type": "string", "format": format}}).read({"a": value})
    assert (found.problems == {}) is fits


def test_a_text_without_a_limit_has_one_all_the_same() -> None:
    found = form({"a": {"type": "string"}})
    assert found.read({"a": "x" * LONGEST_TEXT}).problems == {}
    assert list(found.read({"a": "x" * (LONGEST_TEXT + 1)}).problems) == ["a"]


def test_lengths_are_counted_in_characters() -> None:
    found = form({"a": {"type": "string", "maxLength": 2}})
    assert found.read({"a": "😀é"}).problems == {}


def test_an_integer_may_be_written_as_a_number() -> None:
    found = form({"a": {"type": "integer"}}).read({"a": 3.0})
    assert found.values == {"a": 3}
    assert isinstance(found.values["a"], int)


def test_what_was_not_asked_for_is_left_out_and_null_counts_as_left_out() -> None:
    found = form({"a": {"type": "string"}, "b": {"type": "string"}}, required=["b", "c"])
    assert found.read({"a": None, "b": "x", "z": 1}) == ({"b": "x"}, {})
    assert found.read({"a": "x"}) == ({"a": "x"}, {"b": "is missing"})


@requirement("ELIC-09")
def test_what_is_of_an_unknown_type_stays_as_it_came() -> None:
    seat = {"type": "seat_map", "title": 3, "rows": [1, 2]}
    odd = {"type": "array", "items": {"type": "_odd", "x": 1}}
    found = form({"seat": seat, "odd": odd})
    assert all(isinstance(field, UnknownField) for field in found.fields)
    assert [field.title for field in found.fields] == ["seat", "odd"]
    raws = [msgspec.to_builtins(field)["raw"] for field in found.fields]
    assert raws == [seat, odd]
    assert found.read({"seat": {"row": 1}}).values == {"seat": {"row": 1}}
