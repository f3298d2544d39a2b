"""Frames: what a line is, and whose fault it is when it is nothing."""

from __future__ import annotations

import contextlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from tests.requirements.marks import requirement

from antiphon.errors import ErrorObject, InvalidRequest, ParseError, TooDeep
from antiphon.jsonrpc import frames
from antiphon.jsonrpc.frames import Failure, MalformedResponse, Notification, Request, Response


def raw(value: object) -> object:
    return None if value is None else bytes(value)  # type: ignore[call-overload]


@requirement("RPC-01")
def test_the_four_shapes_are_told_apart() -> None:
    request = frames.decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}')
    assert isinstance(request, Request)
    assert (request.id, request.method, raw(request.params)) == (1, "m", b'{"a":1}')
    note = frames.decode(b'{"jsonrpc":"2.0","method":"m"}')
    assert note == Notification("m", None)
    response = frames.decode(b'{"jsonrpc":"2.0","id":"a","result":null}')
    assert isinstance(response, Response)
    assert (response.id, raw(response.result)) == ("a", b"null")
    failure = frames.decode(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}')
    assert failure == Failure(None, ErrorObject(-32700, "no"))


@requirement("RPC-05")
@pytest.mark.parametrize("id", ["1", 1, -5, 2**60, "", "ü"])
def test_an_id_keeps_its_value_and_its_type(id) -> None:
    request = frames.decode(frames.encode_request(id, "m", b"{}"))
    assert isinstance(request, Request)
    assert request.id == id
    assert type(request.id) is type(id)


@requirement("RPC-02")
def test_a_null_id_makes_a_request_and_a_missing_one_a_notification() -> None:
    assert frames.decode(b'{"jsonrpc":"2.0","id":null,"method":"m"}') == Request(None, "m", None)
    assert frames.decode(b'{"jsonrpc":"2.0","method":"m"}') == Notification("m", None)


@requirement("RPC-10", "TRANS-01")
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"hello",
        b'{"jsonrpc":"2.0","method":"m"} {}',
        b'{"jsonrpc":"2.0","method":"m","params":{"s":"\xff\xfe"}}',
        b'{"a":NaN}',
    ],
)
def test_what_is_no_json_in_utf_8_is_a_parse_error(line: bytes) -> None:
    with pytest.raises(ParseError):
        frames.decode(line)


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b"[" * 200 + b"]" * 200,
        b'{"jsonrpc":"2.0","method":"m","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b'{"a":' * 970 + b"1" + b"}" * 971,
    ],
)
def test_a_frame_that_is_nested_too_deep_is_refused_before_it_is_parsed(line: bytes) -> None:
    with pytest.raises(TooDeep, match="128"):
        frames.decode(line)


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n"])
def test_what_stays_raw_of_a_frame_of_several_lines_stands_on_one(newline: str) -> None:
    value = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"text": "a\nb\r\u2028", "list": [{}, [1]]}}
    request = frames.decode(json.dumps(value, indent=2).replace("\n", newline).encode())
    assert isinstance(request, Request)
    assert request.params is not None
    raw = bytes(request.params)
    assert b"\n" not in raw
    assert b"\r" not in raw
    assert json.loads(raw) == value["params"]


@pytest.mark.parametrize("control", ["\n", "\r", "\t", "\0", "\x1b"])
def test_a_control_character_inside_of_a_string_is_not_mended(control: str) -> None:
    with pytest.raises(ParseError):
        frames.decode(b'{"jsonrpc":"2.0","method":"m","params":{"text":"a%bb"}}' % control.encode())


@pytest.mark.parametrize("data", [b"1e999", b"-1e999", b"1" * 5000])
def test_an_error_with_a_number_out_of_range_still_fails_its_call(data: bytes) -> None:
    failure = frames.decode(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no","data":%b}}' % data)
    assert failure == Failure(1, ErrorObject(-32603, "Malformed error"))


@requirement("RPC-11")
@pytest.mark.parametrize(
    "line",
    [
        b"42",
        b'"text"',
        b"null",
        b"true",
        b"{}",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"1.0","id":1,"method":"m"}',
        b'{"id":1,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":{},"method":"m"}',
        b'{"jsonrpc":"2.0","id":true,"method":"m"}',
    ],
)
def test_json_that_is_no_frame_is_an_invalid_request(line: bytes) -> None:
    with pytest.raises(InvalidRequest):
        frames.decode(line)


@requirement("RPC-12")
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","result":1}',
        b'{"jsonrpc":"2.0","id":[],"result":1}',
    ],
)
def test_a_malformed_response_is_told_from_a_malformed_request(line: bytes) -> None:
    assert isinstance(frames.decode(line), MalformedResponse)


@requirement("RPC-26")
def test_an_error_of_any_shape_is_still_an_error() -> None:
    failure = frames.decode(b'{"jsonrpc":"2.0","id":1,"error":{"code":"E_FAIL","message":7}}')
    assert isinstance(failure, Failure)
    assert failure.error.code == -32603
    assert failure.error.data == {"code": "E_FAIL", "message": 7}


def test_an_answer_without_jsonrpc_or_with_both_members_null_still_reaches_its_caller() -> None:
    assert isinstance(frames.decode(b'{"id":1,"result":{}}'), Response)
    assert isinstance(frames.decode(b'{"id":1,"result":null,"error":{"code":1,"message":"x"}}'), Failure)
    for result in (b"{}", b"null", b"0"):
        line = b'{"jsonrpc":"2.0","id":1,"result":%b,"error":null}' % result
        assert frames.decode(line) == Response(1, Raw(result))
        line = b'{"jsonrpc":"2.0","error": null,"result":%b,"id":1}' % result
        assert frames.decode(line) == Response(1, Raw(result))


@pytest.mark.parametrize("line", [b'[{"jsonrpc":"2.0","method":"m"}, 2,"x"]', b"[]"])
def test_an_array_is_no_frame(line: bytes) -> None:
    with pytest.raises(InvalidRequest, match="ACP has no batches"):
        frames.decode(line)


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    params = rb'{"cut":"\ud83d","whole":"\ud83c\udfb5","low":"a\udfb5b"}'
    line = rb'{"jsonrpc":"2.0","id":1,"method":"m","params":' + params + b"}"
    request = frames.decode(line)
    assert isinstance(request, Request)
    assert json.loads(bytes(request.params or b"")) == {"cut": "\ufffd", "whole": "🎵", "low": "a\ufffdb"}


numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_mending_changes_nothing_that_was_whole(value) -> None:
    line = json.dumps({"value": value}).encode()
    assert json.loads(frames.mended(line)) == {"value": value}


@given(st.binary(max_size=200))
def test_no_bytes_whatever_raise_anything_but_the_senders_fault(line: bytes) -> None:
    with contextlib.suppress(ParseError, InvalidRequest):
        frames.decode(line)


@requirement("TRANS-02")
@given(values)
def test_no_frame_we_write_holds_a_newline(value) -> None:
    params = msgspec.json.encode({"value": value})
    for frame in (
        frames.encode_request("a\nb", "m\n", params),
        frames.encode_notification("m\n", params),
        frames.encode_response(1, params),
        frames.encode_failure(None, ErrorObject(1, "x\ny", value)),
    ):
        assert b"\n" not in frame
        assert isinstance(json.loads(frame), dict)


def test_a_malformed_error_can_be_written_again_however_deep_it_is() -> None:
    for depth in (3, 125, 126, 127):
        error = b'{"a":' * depth + b"1" + b"}" * depth
        read = frames.decode(b'{"jsonrpc":"2.0","id":7,"error":%b}' % error)
        assert isinstance(read, frames.Failure)
        assert frames.decode(frames.encode_failure(read.id, read.error)) == read, depth
