"""What the journal holds as bytes is read strictly, then with repair, and never raises anything else."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from antiphon.engine.reading import CONTENT, UPDATES, kept
from antiphon.schema.repair import Malformed
from antiphon.schema.v2.content import TextContent
from antiphon.schema.wire import Unknown


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
