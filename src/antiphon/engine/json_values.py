"""JSON values of the journal: encoding, and reading bytes as v2 types, strictly and then once more with
repair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw

from antiphon.errors import EventRefused
from antiphon.jsonrpc.frames import UNREADABLE
from antiphon.schema.repair import Malformed, repair
from antiphon.schema.v2.content import ContentBlock
from antiphon.schema.v2.updates import SessionUpdate
from antiphon.schema.wire import choose

T = TypeVar("T")
_plain = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def encode(value: Any) -> bytes:
    """Encode a value as JSON. Raises `EventRefused` for a value that JSON cannot hold: an object of a foreign
    type, a lone surrogate, an integer of too many digits, a value that contains itself."""
    try:
        return _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise EventRefused(f"{describe(value)} cannot be encoded as JSON: {error}") from error


def describe(value: Any) -> str:
    """Describe a value by its type and id only: the rest may be private."""
    config = getattr(value, "__struct_config__", None)
    tag = getattr(config, "tag", None)
    ids = (
        getattr(value, name, None) for name in ("message_id", "tool_call_id", "terminal_id", "question_id")
    )
    id = next((id for id in ids if isinstance(id, str)), None)
    return f"{tag or type(value).__name__}{'' if id is None else f' {id!r}'}"


class Reader(Generic[T]):
    """Reads one type; an unknown variant comes out whole (EXT-07)."""

    __slots__ = ("_decode", "_type")

    def __init__(self, type: Any) -> None:
        self._type = type
        self._decode: Callable[[bytes | Raw], Any] = self._decode_first

    def _decode_first(self, raw: bytes | Raw) -> Any:
        """Make the decoder when there is something to read: it takes longer than the type itself."""
        self._decode = msgspec.json.Decoder(self._type, dec_hook=choose).decode
        return self._decode(raw)

    def read(self, raw: bytes | Raw) -> T:
        """Raises `Malformed`."""
        try:
            return self._decode(raw)  # type: ignore[no-any-return]
        except UNREADABLE as error:
            if not isinstance(error, msgspec.ValidationError):
                raise Malformed(str(error)) from None
        try:
            value = _plain(raw)  # what follows a wrong value may not even be JSON
        except UNREADABLE as error:
            raise Malformed(str(error)) from None
        return repair(2).build(self._type, value)  # type: ignore[no-any-return]


UPDATES: Reader[SessionUpdate] = Reader(SessionUpdate)
CONTENT: Reader[list[ContentBlock]] = Reader(list[ContentBlock])


def is_readable(raw: bytes | Raw) -> bool:
    """Whether all of a JSON text can be read. A typed reader skips the fields that it does not know."""
    try:
        _plain(raw)
    except UNREADABLE:
        return False
    return True


def kept(raw: bytes | Raw) -> Raw:
    """Copy `raw`: bytes that msgspec cut out of a line keep the whole line alive."""
    return Raw(bytes(raw))
