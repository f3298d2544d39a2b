"""What the journal holds as bytes is read strictly, then with repair, and never raises anything else."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from antiphon.engine.json_values import CONTENT, UPDATES, Reader, encode, kept
from antiphon.engine.prompts import Entry
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.schema.repair import Malformed, repair
from antiphon.schema.v2.content import TextContent
from antiphon.schema.v2.prompt import StopReason
from antiphon.schema.wire import Unknown

ENTRY = Entry(
    message_id="m",
    raw_content=Raw(b'[{"type":"text","text":"x"},{"type":"_new","n":1}]'),
    delivery=Delivery.QUEUE,
    held=True,
    stop_reason=StopReason("_mine"),
)


def test_unknown_variants_come_out_whole() -> None:
    assert CONTENT.read(b'[{"type":"_odd","x":1},{"type":"text","text":"t"}]') == [
        Unknown(type="_odd", x=1),
        TextContent(text="t"),
    ]


@pytest.mark.parametrize("raw", [b"", b"[", b'{"sessionUpdate":5, bad', b"\xff", b"[" * 100_000])
def test_what_cannot_be_read_is_malformed(raw: bytes) -> None:
    with pytest.raises(Malformed):
        UPDATES.read(raw)


@given(st.binary(max_size=30))
def test_nothing_but_malformed_is_raised(raw: bytes) -> None:
    with suppress(Malformed):
        UPDATES.read(raw)


def test_what_is_kept_stands_on_its_own() -> None:
    line = Raw(b'{"a":1}')
    assert kept(line) == line
    assert kept(line) is not line


def test_a_part_that_is_kept_as_bytes_is_rebuilt_by_repair() -> None:
    rebuilt = repair(2).build(Entry, msgspec.json.decode(encode(ENTRY)))
    assert msgspec.json.decode(rebuilt.raw_content) == msgspec.json.decode(ENTRY.raw_content)
    assert rebuilt.content == ENTRY.content
    assert encode(rebuilt) == encode(ENTRY)


def test_what_is_wrong_with_an_entry_is_named_and_not_what_is_right() -> None:
    broken = {**msgspec.json.decode(encode(ENTRY)), "held": "perhaps"}
    with pytest.raises(Malformed, match=r"held"):
        Reader(Entry).read(encode(broken))
