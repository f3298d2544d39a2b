"""The hot path: what it reads is what the general way would read, and everything else is left to that."""

from __future__ import annotations

import pytest

from antiphon.jsonrpc import frames
from antiphon.jsonrpc.oversized import Overlong
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.updates import is_update

LINE = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
    b'{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"a"}}}}'
)


@pytest.mark.parametrize("version", [1, 2])
def test_an_update_line_is_read_in_one_pass_as_the_general_way_would(version):
    frame = frames.decode(LINE)
    assert isinstance(frame, frames.Notification)
    general = codec(version).params(Kind.NOTIFICATION, frame.method, frame.params)
    assert codec(version).updates.read(LINE) == general
    assert codec(version).updates.read_all([LINE, LINE]) == [general, general]


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{", b"[]", b"null", b'{"jsonrpc":"2.0","id":1,"result":{}}',
        LINE.replace(b'"method"', b'"id":1,"method"'),
        LINE.replace(b'"method"', b'"id":null,"method"'),
        LINE.replace(b'"2.0"', b'"1.0"'),
        LINE.replace(b'"jsonrpc":"2.0",', b""),
        LINE.replace(b'"text":"a"', b'"text":5'),
        LINE.replace(b"agent_message_chunk", b"_unheard_of"),
        LINE.replace(b'"text":"a"', b'"text":"\\ud83d"'),
        LINE.replace(b'"text":"a"', b'"text":"\xff"'),
        LINE.replace(b'"text":"a"', b'"text":"a","_meta":{"x":' + b"[" * 5000 + b"]" * 5000 + b"}"),
        b'{"jsonrpc":"2.0","method":"_x","params":{"a":"session/update"}}',
        b'{"jsonrpc":"2.0","method":"session/update"}',
        LINE[:-2],
        LINE + b"x",
        LINE[:-1] + b"]",
        LINE[:-1] + b',"id":1}',
        LINE[:-1] + b',"params":{}}',
    ],
)  # fmt: skip
def test_a_line_that_is_no_strict_update_goes_the_general_way(line):
    assert codec(2).updates.read(line) is None
    assert codec(2).updates.read_all([LINE, line, LINE]) is None


def test_a_line_written_otherwise_is_read_in_a_run_and_alone_goes_the_general_way():
    spaced = LINE.replace(b'":', b'": ')
    assert codec(2).updates.read(spaced) is None
    assert codec(2).updates.read_all([LINE, spaced]) == [codec(2).updates.read(LINE)] * 2


def test_an_overlong_frame_among_them_is_left_to_the_general_way():
    overlong = Overlong(9, 8)
    assert codec(1).updates.read_all([LINE, overlong]) is None
    assert not is_update(overlong)
    assert is_update(LINE)


def test_newlines_inside_a_frame_do_not_make_it_two():
    assert codec(1).updates.read_all([LINE + b"\n" + LINE, LINE]) is None
    assert codec(1).updates.read(LINE + b"\n" + LINE) is None
