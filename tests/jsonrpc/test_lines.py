"""The line splitter: whatever the cuts, the same lines come out, and never more is held than may be."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.requirements.marks import requirement

from antiphon.jsonrpc.lines import LineSplitter
from antiphon.jsonrpc.oversized import OversizedFrame

line = st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"").replace(b"\r", b""))


def cut(data: bytes, at: list[int]) -> list[bytes]:
    points = [0, *sorted(point % (len(data) + 1) for point in at), len(data)]
    return [data[a:b] for a, b in pairwise(points)]


@given(
    lines=st.lists(line), ends=st.lists(st.sampled_from([b"\n", b"\r\n"])), at=st.lists(st.integers(0, 9999))
)
def test_lines_come_out_whole_wherever_the_reads_are_cut(lines, ends, at) -> None:
    data = b"".join(text + (ends[n % len(ends)] if ends else b"\n") for n, text in enumerate(lines))
    splitter = LineSplitter()
    out = [found for piece in cut(data, at) for found in splitter.feed(piece)]
    assert out + splitter.end() == [text for text in lines if text]


@requirement("RPC-38")
@given(sizes=st.lists(st.integers(0, 30)), at=st.lists(st.integers(0, 9999)), bound=st.integers(1, 20))
def test_a_line_over_the_bound_is_reported_in_its_place_and_the_rest_lives(sizes, at, bound) -> None:
    data = b"".join(b"x" * size + b"\n" for size in sizes)
    splitter = LineSplitter(bound=bound)
    out = [found for piece in cut(data, at) for found in splitter.feed(piece)]
    expected = [b"x" * size if size <= bound else OversizedFrame(size, bound) for size in sizes if size]
    assert out == expected


@requirement("TRANS-07")
def test_a_last_line_without_newline_counts_and_blank_lines_do_not() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"\n\r\n{}\n\n{") == [b"{}"]
    assert splitter.feed(b"}") == []
    assert splitter.end() == [b"{}"]
    assert splitter.end() == []


def test_a_line_over_the_bound_is_not_kept_while_it_arrives() -> None:
    splitter = LineSplitter(bound=1000)
    tracemalloc.start()
    for _ in range(100):
        assert splitter.feed(b"x" * 100_000) == []
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert splitter.feed(b"\n{}\n") == [OversizedFrame(10_000_000, 1000), b"{}"]


@given(at=st.lists(st.integers(0, 9999)), id_last=st.booleans())
def test_the_id_of_a_line_over_the_bound_is_found(at, id_last) -> None:
    params = b'"params":{"x":"%b"}' % (b"x" * 9000)
    frame = b'{"method":"m",%b,"id":7}' if id_last else b'{"id":7,"method":"m",%b}'
    splitter = LineSplitter(bound=100)
    data = frame % params + b"\n"
    out = [found for piece in cut(data, at) for found in splitter.feed(piece)]
    assert out == [OversizedFrame(len(data) - 1, 100, 7)]
