"""Server-sent events: what was written is read, however it was cut and whatever ends its lines."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.requirements.marks import requirement

from antiphon.jsonrpc.oversized import OversizedFrame
from antiphon.jsonrpc.sse import KEEP_ALIVE, Event, EventDecoder, encode_event

IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=8).filter(
    lambda id: not id.startswith(" ")
)
DATA = st.binary(max_size=60).map(lambda data: data.replace(b"\r", b"\n"))
EVENTS = st.lists(st.tuples(DATA, IDS), max_size=8)


def read(stream: bytes, cuts: list[int], **options: int) -> list[Event | OversizedFrame]:
    decoder = EventDecoder(**options)
    found: list[Event | OversizedFrame] = []
    edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    for start, end in pairwise(edges):
        found += decoder.feed(stream[start:end])
    return found


@requirement("HTTP-14")
@given(EVENTS, st.lists(st.integers(min_value=0), max_size=20), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_what_was_written_is_read_whatever_ends_its_lines(events, cuts, end) -> None:
    stream = b"".join(encode_event(data, id=id) for data, id in events).replace(b"\n", end)
    assert read(stream, cuts) == [Event(data, id) for data, id in events]


@given(st.binary(max_size=300), st.lists(st.integers(min_value=0), max_size=20))
def test_any_bytes_are_read_alike_however_they_are_cut(stream, cuts) -> None:
    assert read(stream, cuts) == read(stream, [])


@given(
    st.lists(st.sampled_from([b"data", b":", b" ", b"\r", b"\n", b"id", b"x", b"\0"]), max_size=60), st.data()
)
def test_nearly_events_are_read_alike_however_they_are_cut(pieces, data) -> None:
    stream = b"".join(pieces)
    cuts = data.draw(st.lists(st.integers(0, max(len(stream), 1)), max_size=20))
    assert read(stream, cuts, bound=9) == read(stream, [], bound=9)


@requirement("HTTP-13", "HTTP-14")
@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: 1\n\n", [Event(b"1")]),
        (b"data:1\n\n", [Event(b"1")]),
        (b"data:  1\n\n", [Event(b" 1")]),
        (b"data: 1\ndata: 2\n\n", [Event(b"1\n2")]),
        (b"data\n\n", [Event(b"")]),
        (b"\xef\xbb\xbfdata: 1\n\n", [Event(b"1")]),
        (b":\n\n: a comment\r\ndata: 1\r\r", [Event(b"1")]),
        (b"event: acp\nretry: 10\ndata: 1\n\n", [Event(b"1", fields={"event": "acp", "retry": "10"})]),
        (b"id: 7\n\ndata: 1\n\n", [Event(None, "7"), Event(b"1", "7")]),
        (b"id: 7\ndata: 1\n\nid\ndata: 2\n\n", [Event(b"1", "7"), Event(b"2", "")]),
        (b"id: a\0b\ndata: 1\n\n", [Event(b"1")]),
        (b"after: s 3\nid: 1\ndata: 1\n\n", [Event(b"1", "1", {"after": "s 3"})]),
        (b"\n\n\n", []),
        (b"data: 1\n", []),
        (b"data: 1", []),
        (KEEP_ALIVE, []),
    ],
)
def test_what_is_an_event(stream: bytes, events: list[Event]) -> None:
    assert read(stream, []) == read(stream, list(range(len(stream)))) == events


@requirement("HTTP-13")
def test_an_event_is_one_line_of_data() -> None:
    assert encode_event(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert encode_event(b"{}", id="3-4", after="s 1") == b"after: s 1\nid: 3-4\ndata: {}\n\n"
    assert encode_event(None, id="3") == b"id: 3\n\n"


@requirement("HTTP-14")
@pytest.mark.parametrize("data", [b"\n", b"\n\n", b"a\n", b"\na", b"a\n\n b", b"a\r\n\r\r"])
def test_line_ends_in_the_data_are_kept_as_line_feeds(data: bytes) -> None:
    assert read(encode_event(data), []) == [Event(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))]


@pytest.mark.parametrize("cuts", [[], list(range(400))])
def test_an_event_over_the_bound_is_told_in_its_place_and_nothing_of_it_is_kept(cuts: list[int]) -> None:
    long = b"x" * 300
    stream = b"data: 1\n\ndata: %b\n\ndata: 12\ndata: %b\n\ndata: 2\n\n" % (long, b"y" * 8)
    assert read(stream, cuts, bound=10) == [
        Event(b"1"),
        OversizedFrame(300, 10),
        OversizedFrame(11, 10),
        Event(b"2"),
    ]


def test_what_nobody_ends_does_not_grow() -> None:
    decoder = EventDecoder(bound=100)
    for _ in range(1000):
        assert decoder.feed(b"data: " + b"x" * 1000) == []
    assert sum(map(len, decoder._line)) < 2000
    assert decoder.feed(b"\n\ndata: 1\n\n")[-1] == Event(b"1")
