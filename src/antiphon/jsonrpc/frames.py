"""Frames: the four shapes of a JSON-RPC 2.0 value, read from and written to bytes.

This module knows no methods. `params` and `result` stay raw bytes until the codec of a method decodes them.
Encoders take encoded params and results, and do not parse them again.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from antiphon.errors import ErrorObject, InvalidRequest, ParseError, TooDeep
from antiphon.jsonrpc.structure import FLAT, check_structure

RequestId = str | int | float | None
"""An id, exactly as sent (RPC-05). `None` and fractions are valid in v1 only (RPC-02, RPC-03)."""
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Raised by msgspec for JSON that is broken, not UTF-8, nested too deeply, or not of the expected type."""


class Request(Struct, frozen=True):
    id: RequestId
    method: str
    params: Raw | None = None


class Notification(Struct, frozen=True):
    """`params` is raw, or typed if a codec decoded the whole line in one pass."""

    method: str
    params: Any = None


class Response(Struct, frozen=True):
    id: RequestId
    result: Raw


class Failure(Struct, frozen=True):
    id: RequestId
    error: ErrorObject


Frame = Request | Notification | Response | Failure


class MalformedResponse(Struct, frozen=True):
    """An invalid response, which gets no response itself (RPC-12). If `id` is that of a call, the call fails,
    because no other response will come."""

    id: RequestId
    reason: str


class _Envelope(Struct):
    jsonrpc: Any = UNSET
    id: str | int | float | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_envelope = msgspec.json.Decoder(_Envelope)
_anything = msgspec.json.Decoder()
_error = msgspec.json.Decoder(ErrorObject)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LF, _CR = b"\n\r"
_TABS_FOR_NEWLINES = bytes.maketrans(b"\n\r", b"\t\t")


def decode(line: bytes) -> Frame | MalformedResponse:
    """Decode one frame. Raises `ParseError`, `InvalidRequest` or `TooComplex`.

    Raw values are valid UTF-8 on one line, nested at most `MAX_DEPTH` levels deep: other modules copy them
    into journals and frames.
    """
    if len(line) > FLAT:
        check_structure(line)
    return _decode(on_one_line(line))


def on_one_line(json: bytes) -> bytes:
    """Return the same JSON text without line breaks, which a frame may contain if its transport has no lines.

    A tab is valid in JSON exactly where a line break is, so invalid JSON stays invalid.
    """
    return json.translate(_TABS_FOR_NEWLINES) if _LF in json or _CR in json else json


def _decode(line: bytes) -> Frame | MalformedResponse:
    try:
        if not line.isascii():
            line.decode("utf-8")  # msgspec does not check raw values (TRANS-01)
        envelope = _envelope.decode(line)
    except msgspec.ValidationError as error:
        return _explain(line, error)
    except UNREADABLE as error:
        clean = mended(line)
        if clean == line:
            raise ParseError(str(error)) from None
        return _decode(clean)
    if envelope.method is UNSET:
        return _response(envelope)
    if envelope.jsonrpc != "2.0":
        raise InvalidRequest('`jsonrpc` must be "2.0"')
    params = None if envelope.params is UNSET else envelope.params
    if envelope.id is UNSET:
        return Notification(envelope.method, params)
    return Request(envelope.id, envelope.method, params)


def _response(envelope: _Envelope) -> Frame | MalformedResponse:
    # A missing `jsonrpc` is accepted: to refuse a response would leave its caller waiting.
    if envelope.id is UNSET and envelope.result is UNSET and envelope.error is UNSET:
        raise InvalidRequest(
            "neither a request nor a response: `method`, `id`, `result` and `error` are missing"
        )
    id = None if envelope.id is UNSET else envelope.id
    has_result = envelope.result is not UNSET and not is_null(envelope.result)
    has_error = envelope.error is not UNSET and not is_null(envelope.error)
    if has_result and has_error:
        return MalformedResponse(id, "it has both `result` and `error`")
    # Some peers write the other member as null. It is ignored next to a value.
    if envelope.result is not UNSET and not has_error:
        if envelope.id is UNSET:
            return MalformedResponse(None, "it has a `result` and no `id`")
        return Response(id, envelope.result)
    if envelope.error is UNSET:
        return MalformedResponse(id, "it has neither `result` nor `error`")
    try:
        return Failure(id, _error.decode(envelope.error))
    except msgspec.MsgspecError:
        return Failure(id, _malformed_error(envelope.error))


def _malformed_error(raw: Raw) -> ErrorObject:
    """Return the error for a response whose `error` is malformed; `data` has that, if it can be decoded and
    written again: there it is one level deeper."""
    try:
        check_structure(b"[[%b]]" % bytes(raw))
        return ErrorObject(-32603, "Malformed error", _anything.decode(raw))
    except (msgspec.MsgspecError, TooDeep):  # such as a number that is out of range
        return ErrorObject(-32603, "Malformed error")


def is_null(raw: bytes | Raw) -> bool:
    return len(raw) == 4 and bytes(raw) == b"null"


def _explain(line: bytes, error: msgspec.ValidationError) -> MalformedResponse:
    """Return or raise why a line of JSON is not an envelope."""
    try:
        value = _anything.decode(line)
    except UNREADABLE as broken:
        raise ParseError(str(broken)) from None
    if isinstance(value, list):
        # RPC-14, RPC-16: one refusal for the whole array, and none of it is executed (C-02).
        raise InvalidRequest(f"expected one object, got an array of {len(value)}: ACP has no batches")
    if isinstance(value, dict) and "method" not in value and value.keys() & {"id", "result", "error"}:
        return MalformedResponse(None, str(error))
    raise InvalidRequest(str(error))


def mended(line: bytes) -> bytes:
    """Return a value that msgspec refuses as JSON that it accepts, by way of the standard library.

    A JavaScript peer that cuts an emoji in two sends a lone surrogate escape, which becomes U+FFFD.
    Raises `ParseError` if the line is not JSON.
    """
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ParseError(str(error)) from None
    return without_lone_surrogates(json.dumps(value, ensure_ascii=False)).encode("utf-8")


def without_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def _refuse_constant(name: str) -> NoReturn:
    raise ParseError(f"{name} is not JSON")


# --- encoding: params and results are encoded JSON -------------------------------------------------

_encode = msgspec.json.Encoder().encode


def encode_request(id: RequestId, method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (_encode(id), _encode(method), params)


def encode_notification(method: str, params: bytes) -> bytes:
    return _notification_start(method) + params + b"}"


@lru_cache(maxsize=256)
def _notification_start(method: str) -> bytes:
    return b'{"jsonrpc":"2.0","method":%b,"params":' % _encode(method)


def encode_response(id: RequestId, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode(id), result)


def encode_failure(id: RequestId, error: ErrorObject) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode(id), _encode(error))
