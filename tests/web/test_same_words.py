"""Where the page does again what the library does, both do the same: forms, and text made visible."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.engine.forms.form import Form
from antiphon.engine.forms.patterns import TooCostly, Unsupported, pattern
from antiphon.schema import v2
from antiphon.schema.repair import repair
from antiphon.text_safety import printed_text, safe_line, safe_text
from tests.requirements.marks import requirement
from tests.web.calling import Modules
from tests.web.nodes import needs_node

pytestmark = needs_node
shared = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

TRICKS = "\x1b\x07\r\n\t\x00\x85\u2028\u200b\u200d\u202e\u2066\ufeff\U000e0041[];m31ab \u0627\U0001f469é"
TEXTS = st.text(max_size=60) | st.text(TRICKS, max_size=60)


@shared
@given(text=TEXTS)
def test_text_is_made_safe_as_the_library_does(modules: Modules, text: str) -> None:
    assert modules.of("text_safety.js", "safeText")(text) == safe_text(text)
    assert modules.of("text_safety.js", "safeLine")(text) == safe_line(text)
    assert modules.of("text_safety.js", "printedText")(text) == printed_text(text)


def test_every_character_is_shown_or_named_as_the_library_does(modules: Modules) -> None:
    """Behind a letter, behind an emoji, and behind letters of other scripts."""
    planes = [code for plane in range(1, 17) for code in range((plane << 16) + 0xFFF0, (plane + 1) << 16)]
    blocks = [range(0xD800), range(0xE000, 0x10000), range(0x1BC00, 0x1BD00), range(0x1D100, 0x1D200)]
    codes = [*chain(*blocks), *range(0x1F000, 0x1FB00), *range(0xE0000, 0xE1010), *planes]
    every = list(map(chr, codes))
    for before in ("a", "\U0001f469", "\u0627", "\u845b"):
        text = "\n".join(before + char for char in every)
        here, there = modules.of("text_safety.js", "safeText")(text).split("\n"), safe_text(text).split("\n")
        different = [ascii(one) for one, other in zip(here, there, strict=True) if one != other]
        assert different == []


SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Trip",
    "properties": {
        "to": {"type": "string", "title": "Where to?", "minLength": 2, "maxLength": 9, "pattern": "^[A-Z]"},
        "mail": {"type": "string", "format": "email"},
        "site": {"type": "string", "format": "uri"},
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "people": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
        "price": {"type": "number", "maximum": 99.5},
        "meals": {"type": "boolean"},
        "by": {"type": "string", "enum": ["train", "bus"]},
        "with": {"type": "string", "oneOf": [{"const": "a", "title": "Ann"}, {"const": "b", "title": "Bob"}]},
        "days": {"type": "array", "items": {"type": "string", "enum": ["mo", "tu", "we"]}, "maxItems": 2},
        "who": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}},
    },
    "required": ["to", "by"],
}
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "to": st.sampled_from(["Ulm", "ulm", "U", "Ulm an der Donau", "Ä", "\U0001f469\u200d\U0001f9b0"]),
        "mail": st.sampled_from(["ann@example.org", "ann", "@x", "a b@c", "a@b@c"]),
        "site": st.sampled_from(["https://example.org", "example.org", "mailto:a", "a b:c"]),
        "day": st.sampled_from(["2031-01-28", "2031-02-30", "28.1.2031", "0000-01-01"]),
        "at": st.sampled_from(["2031-01-28T10:00:00Z", "2031-01-28T10:00:00", "2031-01-28 10:00:00+01:00"]),
        "people": st.sampled_from([0, 1, 9, 10, 2.5]),
        "price": st.sampled_from([1, 99.5, 99.6, -3]),
        "meals": st.booleans(),
        "by": st.sampled_from(["train", "bus", "boat"]),
        "with": st.sampled_from(["a", "b", "Ann"]),
        "days": st.lists(st.sampled_from(["mo", "tu", "we", "su"]), min_size=1, max_size=3),
        "who": st.sampled_from([["x"], ["y"]]),
    },
)


def form() -> Form:
    schema = repair(2).build(v2.ElicitationSchema, SCHEMA)
    assert isinstance(schema, v2.ElicitationSchema)
    return Form(schema)


@shared
@given(answer=ANSWERS)
def test_an_answer_fits_a_form_here_as_there(modules: Modules, answer: dict[str, Any]) -> None:
    there = form().read(answer)
    here = modules.of("form_fields.js", "readForm")(modules.of("form_fields.js", "fieldsOf")(SCHEMA), answer)
    assert set(here["problems"]) == set(there.problems)
    assert here["values"] == there.values


def test_fields_are_read_as_the_library_does(modules: Modules) -> None:
    there = form().fields
    here = modules.of("form_fields.js", "fieldsOf")(SCHEMA)
    kinds = [type(field).__name__.removesuffix("Field").lower() for field in there]
    assert [field["kind"] for field in here] == kinds
    assert [(f["name"], f["title"], f["required"], f["default"]) for f in here] == [
        (field.name, field.title, field.required, field.default) for field in there
    ]


@requirement("ELIC-09")
@pytest.mark.parametrize("property", [{"type": "_odd"}, {"type": "array", "items": {"type": "_odd"}}, {}])
def test_a_kind_of_field_that_nobody_knows_is_not_guessed(modules: Modules, property: Any) -> None:
    schema = {"type": "object", "properties": {"odd": property}, "required": ["odd"]}
    fields = modules.of("form_fields.js", "fieldsOf")(schema)
    assert [field["kind"] for field in fields] == ["unknown"]
    assert "odd" in modules.of("form_fields.js", "readForm")(fields, {"odd": "x"})["problems"]


NASTY = [
    "^a{0,99}a{0,99}a{0,99}a{0,99}a{0,99}b$",
    "^(a+)+$",
    "^(a|aa)+$",
    "(x+x+)+y",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(.*)*(.*)*(.*)*b$",
    "^(a?){50}a{50}$",
    "(?:a|a|a|a)*$",
    r"^(\w+\s?)*$",
    "[" + "".join(map(chr, range(0x4E00, 0x4E00 + 900))) + "]{0,9}x",
]
PIECES = st.sampled_from(
    [
        "a", "b", "[a-c]", "[^b]", r"\d", r"\W", ".", "^", "$", r"\b", "(a|b)", "(?:ab)?", "a*", "b+?",
        "a{2}", "[é-ü]", "|", r"\p{L}", r"\P{Lu}", r"\u0061", r"[\s\-]", "(?<n>a)", "(", "(?=a)", r"\1",
        "a{1,3}", "*",
    ]
)  # fmt: skip
PATTERNS = st.lists(PIECES, max_size=6).map("".join)


@shared
@given(source=PATTERNS, text=st.text("ab1é ", max_size=8))
def test_a_pattern_finds_here_what_it_finds_there(modules: Modules, source: str, text: str) -> None:
    try:
        there: bool | None = pattern(source).found_in(text)
    except Unsupported:
        there = None
    assert modules.of("patterns.js", "matches")(source, text) is there


@pytest.mark.parametrize("source", NASTY)
@pytest.mark.parametrize("text", ["a" * 40 + "!", "a" * 5_000 + "!", "x" * 100_000], ids=len)
def test_no_pattern_of_a_form_stands_still(modules: Modules, source: str, text: str) -> None:
    """A browser's own regular expression would take longer than anybody waits with most of these."""
    assert modules.of("patterns.js", "matches")(source, text) in (True, False, None)
    form = modules.of("form_fields.js", "fieldsOf")(
        {"properties": {"x": {"type": "string", "pattern": source}}}
    )
    read = modules.of("form_fields.js", "readForm")(form, {"x": text})
    assert len(read["problems"]) + len(read["values"]) == 1
    with suppress(TooCostly):
        pattern(source).found_in(text)
