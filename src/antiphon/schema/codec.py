"""Decodes and encodes by method and version: strictly in one pass, and once more with repair if that fails.

A codec knows types, not frames; the one exception is `update_line`, the hot path, which reads a whole
`session/update` line at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import InvalidParams, InvalidResult, MethodNotFound, UnsupportedVersion
from antiphon.jsonrpc.frames import Notification
from antiphon.schema.methods import VERSIONS, Kind, find, resolve
from antiphon.schema.repair import QUIRKS, Malformed, repair
from antiphon.schema.wire import choose

UPDATE = "session/update"
_UPDATE_START = b'{"jsonrpc":"2.0","method":"session/update"'
_UPDATE_QUOTED = b'"session/update"'
_UPDATE_WITHIN = 96
"""Every peer we know writes `method` before `params`; a line that does not takes the general way."""

_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_encoder = msgspec.json.Encoder()
_builtins = msgspec.json.Decoder()


class Codec:
    """What one protocol version says on the wire. Get it with `codec(version)`."""

    __slots__ = ("_decoders", "_read_update", "encode", "version")

    encode: Callable[[Any], bytes]
    """Any wire type, or plain JSON value, as bytes."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.encode = _encoder.encode
        self._decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
        self._read_update: Callable[[bytes], Notification] = self._first_update

    def params(self, kind: Kind, name: str, raw: bytes | Raw | None) -> Any:
        """The params of a method; missing ones and `null` count as `{}`, and the params of an extension
        (EXT-01) are plain JSON values. Raises `MethodNotFound`, `InvalidParams`."""
        if raw is None or _is_null(raw):
            raw = b"{}"
        method = find(kind, name, self.version)
        try:
            if method is None:
                return self._extension(name, raw)
            return self._decode(method.params, raw)
        except Malformed as error:
            raise InvalidParams(str(error)) from None

    def result(self, name: str, raw: bytes | Raw) -> Any:
        """The result of a request of ours. Raises `MethodNotFound`, `InvalidResult`."""
        method = find(Kind.REQUEST, name, self.version)
        try:
            if method is None:
                return self._extension(name, raw)
            if QUIRKS[self.version].null_is_empty and _is_null(raw) and _needs_nothing(method.result):
                return method.result()
            return self._decode(method.result, raw)
        except Malformed as error:
            lacking = self._lacking(name, raw)
            if lacking is None:
                raise InvalidResult(f"{name}: {error}") from None
            return lacking

    def update_line(self, line: bytes) -> Notification | None:
        """A whole line as a typed `session/update`, or `None` where it is something else or needs repair:
        then go the general way, by `frames.decode` and `params`."""
        if not line.startswith(_UPDATE_START) and line.find(_UPDATE_QUOTED, 0, _UPDATE_WITHIN) < 0:
            return None
        try:
            return self._read_update(line)
        except _REFUSALS:
            return None

    def _first_update(self, line: bytes) -> Notification:
        """Loads the types of every update, which only a connection with a session needs."""
        method = find(Kind.NOTIFICATION, UPDATE, self.version)
        assert method is not None
        update: Any = msgspec.defstruct(
            "UpdateLine",
            [
                ("method", Literal["session/update"]),
                ("params", method.params),
                ("jsonrpc", Literal["2.0"]),
                ("id", UnsetType, UNSET),  # a request is no notification
            ],
            bases=(Notification,),
            frozen=True,
            kw_only=True,
        )
        decoder: msgspec.json.Decoder[Notification] = msgspec.json.Decoder(update, dec_hook=choose)
        self._read_update = decoder.decode
        return decoder.decode(line)

    def _decode(self, type: Any, raw: bytes | Raw) -> Any:
        decoder = self._decoders.get(type)
        if decoder is None:
            decoder = self._decoders[type] = msgspec.json.Decoder(type, dec_hook=choose)
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError:
            return repair(self.version).build(type, _plain(raw))
        except _REFUSALS as error:
            raise Malformed(str(error)) from None

    def _extension(self, name: str, raw: bytes | Raw) -> Any:
        if not name.startswith("_"):
            raise MethodNotFound(name)
        return _plain(raw)

    def _lacking(self, name: str, raw: bytes | Raw) -> Any:
        """A result without the key that a quirk lets it lack, or `None`."""
        key, type_name = QUIRKS[self.version].results_without.get(name, ("", ""))
        answer = _plain(raw) if key else None
        if not isinstance(answer, dict) or key in answer:
            return None
        return repair(self.version).build(resolve(self.version, type_name), answer)


def _is_null(raw: bytes | Raw) -> bool:
    return len(raw) == 4 and bytes(raw) == b"null"


def _plain(raw: bytes | Raw) -> Any:
    try:
        return _builtins.decode(raw)
    except _REFUSALS as error:
        raise Malformed(str(error)) from None


@cache
def _needs_nothing(type: Any) -> bool:
    if not isinstance(type, msgspec.StructMeta):
        return False
    struct: Any = type
    return not any(field.required for field in msgspec.structs.fields(struct))


@cache
def codec(version: int) -> Codec:
    """The codec of a version; there is one. Raises `UnsupportedVersion`."""
    if version not in VERSIONS:
        raise UnsupportedVersion(version, VERSIONS)
    return Codec(version)
