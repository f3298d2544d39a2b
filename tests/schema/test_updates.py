"""The hot path: what it reads is what the general way would read, and everything else is left to that."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from antiphon.jsonrpc import frames
from antiphon.jsonrpc.oversized import OversizedFrame
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.updates import SHORT_TEXT, UpdateReader, is_update

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
    overlong = OversizedFrame(9, 8)
    assert codec(1).updates.read_all([LINE, overlong]) is None
    assert not is_update(overlong)
    assert is_update(LINE)


def test_newlines_inside_a_frame_do_not_make_it_two():
    assert codec(1).updates.read_all([LINE + b"\n" + LINE, LINE]) is None
    assert codec(1).updates.read(LINE + b"\n" + LINE) is None


def text_line(update: dict[str, Any], session: str = "s", **beside: Any) -> bytes:
    params = {"sessionId": session, "update": update, **beside}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode()


PLAIN: dict[str, Any] = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}}
NAMED = {**PLAIN, "messageId": "m"}
MORE: list[dict[str, Any]] = [
    {**NAMED, "_meta": {"k": 1}},
    {**NAMED, "vendor": 1},
    {**NAMED, "content": {**PLAIN["content"], "annotations": None}},
    {**NAMED, "content": {**PLAIN["content"], "_meta": {}}},
    {**NAMED, "content": {"type": "text", "text": "a" * (SHORT_TEXT + 1)}},
    {**NAMED, "content": {"type": "image", "data": "", "mimeType": "image/png"}},
    {**NAMED, "sessionUpdate": "user_message_chunk"},
    {"sessionUpdate": "state_update", "state": "idle"},
]


@pytest.mark.parametrize("version", [1, 2])
def test_text_chunks_are_read_in_runs_of_one_session(version: int) -> None:
    thought = {**NAMED, "sessionUpdate": "agent_thought_chunk"}
    lines = [text_line(NAMED), text_line(thought), text_line(NAMED, "t"), text_line(NAMED)]
    read = UpdateReader(version).read_text_chunks(lines)
    assert read is not None
    assert [(session, len(chunks)) for session, chunks in read] == [("s", 2), ("t", 1), ("s", 1)]
    assert msgspec.json.decode(msgspec.json.encode(read[0][1][1])) == thought, "it says what was written"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("update", MORE, ids=lambda update: str(sorted(update)))
def test_what_has_more_to_it_is_no_text_chunk(version: int, update: dict[str, Any]) -> None:
    reader = UpdateReader(version)
    assert reader.read_text_chunks([text_line(update)]) is None
    assert reader.read_text_chunks([text_line(NAMED), text_line(update), text_line(NAMED)]) is None
    assert reader.read_text_chunks([text_line(NAMED, _meta={"k": 1})]) is None


def test_only_v1_has_messages_without_an_id() -> None:
    assert UpdateReader(1).read_text_chunks([text_line(PLAIN)]) is not None
    assert UpdateReader(2).read_text_chunks([text_line(PLAIN)]) is None


def test_what_is_no_line_of_json_is_no_text_chunk() -> None:
    reader = UpdateReader(1)
    assert reader.read_text_chunks([b"{", text_line(PLAIN)]) is None
    assert reader.read_text_chunks([text_line(PLAIN) + b"\n" + text_line(PLAIN)]) is None
    assert reader.read_text_chunks([text_line(PLAIN).replace(b'"a"', b'"\\ud83d"')]) is None
