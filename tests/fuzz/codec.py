"""Frames and the codec with repair: a line is read, or refused with an error for its sender; what was read is
written, and reads back as the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from antiphon.errors import RemoteError
from antiphon.jsonrpc.frames import (
    Failure,
    Frame,
    MalformedResponse,
    Notification,
    Request,
    Response,
    decode,
    encode_failure,
    encode_notification,
    encode_request,
    encode_response,
)
from antiphon.jsonrpc.oversized import HEAD, TAIL, describe_oversized, failure_of
from antiphon.schema.codec import codec
from antiphon.schema.methods import VERSIONS, Kind, methods
from antiphon.schema.updates import unread, written
from tests.fuzz.mutation import seeds
from tests.fuzz.running import Broken, Check

SEEDS = seeds("codec")
WORDS = (
    b'"jsonrpc":"2.0",',
    b'"id":1,',
    b'"method":',
    b'"params":',
    b'"result":',
    b'"error":',
    b"null",
    b"[",
    b"{",
    b'"sessionUpdate":',
    b'"_meta":{}',
    b"\\ud800",
    b"\\u0000",
    b"1e999",
    b"\xff",
    b'"type":',
    b"9" * 30,
    b"[" * 1200,
    b'{"a":' * 1200,
)
RESULTS = sorted({method.name for version in VERSIONS for method in methods(version) if method.result})


@contextlib.contextmanager
def opened() -> Iterator[Check]:
    yield check


def check(data: bytes) -> str:
    if not isinstance(
        decode(failure_of(describe_oversized(data[:HEAD], data[-TAIL:], size=9, bound=8))), Failure
    ):
        raise Broken("the answer to an oversized frame is no failure")
    outcomes = [_line(line) for line in data.split(b"\n") if line]
    return " ".join(outcomes[:3])


def _line(line: bytes) -> str:
    try:
        frame = decode(line)
    except RemoteError as error:
        error.to_wire()
        return f"frame {error.code}"
    if isinstance(frame, MalformedResponse):
        return type(frame).__name__
    if decode(_encoded(frame)) != frame:
        raise Broken(f"{frame} is another frame when it is written and read")
    told = [_version(line, frame, version) for version in VERSIONS]
    return f"{type(frame).__name__} {'/'.join(told)}"


def _encoded(frame: Frame) -> bytes:
    match frame:
        case Request(id, method, params):
            return _with_params(encode_request(id, method, bytes(params or b"0")), params)
        case Notification(method, params):
            return _with_params(encode_notification(method, bytes(params or b"0")), params)
        case Response(id, result):
            return encode_response(id, bytes(result))
        case Failure(id, error):
            return encode_failure(id, error)


def _with_params(encoded: bytes, params: Raw | None) -> bytes:
    return encoded if params is not None else encoded.removesuffix(b',"params":0}') + b"}"


def _version(line: bytes, frame: Frame, version: int) -> str:
    reader = codec(version)
    try:
        match frame:
            case Request(_, method, params):
                return _same(version, Kind.REQUEST, method, reader.params(Kind.REQUEST, method, params))
            case Notification(method, params):
                _hot_path(line, params, version)
                return _same(
                    version, Kind.NOTIFICATION, method, reader.params(Kind.NOTIFICATION, method, params)
                )
            case Response(_, result):
                for method in RESULTS:
                    with contextlib.suppress(RemoteError):
                        read = reader.result(method, result)
                        if reader.result(method, reader.encode(read)) != read:
                            raise Broken(f"the result of {method} is another when it is written and read")
    except RemoteError as error:
        error.to_wire()
        return str(error.code)
    return "ok"


def _same(version: int, kind: Kind, method: str, read: Any) -> str:
    again = codec(version).params(kind, method, codec(version).encode(read))
    if again != read:
        raise Broken(f"{method} in version {version} is another when it is written and read: {read}, {again}")
    return method if not method.startswith("_") else "_"


def _hot_path(line: bytes, params: Raw | None, version: int) -> None:
    """The short ways to read an update agree with the long one."""
    updates, method = codec(version).updates, "session/update"
    read = updates.read(line)
    if read is not None and read != codec(version).params(Kind.NOTIFICATION, method, params):
        raise Broken("an update read in one pass is another")
    many = updates.read_all([line])
    if many is not None and read is not None and many != [read]:
        raise Broken("updates read together are others")
    updates.read_text_chunks([line, line])
    unread(params)
    if read is not None:
        written(line)
